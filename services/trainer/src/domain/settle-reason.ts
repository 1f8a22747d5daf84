// Why a turn may never be trained on, whatever its age and what it would teach.
import type { TurnCompleted, TurnContinued, TurnJudged, TurnOpened } from '@backtalk/proto/facts';

import type { Recipe } from './recipe.js';
import { idsBytes, sampleBytesMax } from './step-size.js';

/** Everything the log holds about one turn. */
export interface TurnFacts {
  readonly opened: TurnOpened | undefined;
  readonly completed: TurnCompleted | undefined;
  readonly continued: TurnContinued | undefined;
  /** The broker's time of the next state: when it was said what the turn is judged by. */
  readonly continuedMs?: number | undefined;
  readonly openedMs?: number | undefined;
}

/** "temperature": it was sampled at another than is trained on. "too_large": its conversation and ids are larger than a sample may be; "too_long": it has more tokens. "missing" and "malformed" say that the log itself is short of something; the gateway's own reasons pass through. */
export type SettleReason =
  | 'missing'
  | 'malformed'
  | 'too_large'
  | 'too_long'
  | 'temperature'
  | 'opted_out'
  | 'side_turn'
  | 'no_outcome'
  | 'lessons_shown'
  | 'untrainable'
  | 'version_changed'
  | 'unknown_version'
  | 'burned_version'
  | 'stale'
  | 'duplicate'
  | 'anchor_surplus'
  | 'crowded_out'
  | 'nothing_to_learn'
  | 'step_failed'
  | 'step_skipped'
  | 'burned_parent'
  | 'abandoned';

/** Lengths in tokens, as the training worker counts: an answer counts as far as it is trained on. */
export type SampleBounds = Pick<Recipe, 'answerTokensMax' | 'sampleTokensMax' | 'onlyTemperature'>;

export function neverTrainable(judged: TurnJudged, facts: TurnFacts, bounds: SampleBounds): string | undefined {
  const { opened, completed, continued } = facts;
  if (opened === undefined || completed === undefined) return 'missing';
  if (opened.consent?.train === false || continued?.consent?.train === false) return 'opted_out';
  if (!completed.trainable) return completed.untrainableReasons[0] ?? 'untrainable';
  if (completed.weightsVersion !== completed.weightsVersionAtEnd) return 'version_changed';
  // Explicit feedback makes a turn count even when no request continued it.
  const isSpokenAbout = judged.evidence.some(({ name }) => name === 'feedback');
  if (continued?.main === false && !isSpokenAbout) return 'side_turn';
  const { promptIds, answerIds, logprobs } = completed;
  const uneven = answerIds.length === 0 || promptIds.length === 0 || answerIds.length !== logprobs.length;
  const malformed = uneven || logprobs.some((value) => !Number.isFinite(value) || value <= -9999);
  if (malformed) return 'malformed';
  const { messages, tools } = opened.conversation ?? { messages: '', tools: '' };
  if (messages.length + tools.length + idsBytes(completed) > sampleBytesMax) return 'too_large';
  const tokens = promptIds.length + Math.min(answerIds.length, bounds.answerTokensMax);
  if (tokens > bounds.sampleTokensMax) return 'too_long';
  // Where lessons were shown, the policy answers anew in the step.
  const isOfStep = completed.shown !== undefined && completed.shown.lessons.length > 0;
  const isTaken = bounds.onlyTemperature === 0 || isOfStep;
  return isTaken || completed.sampling?.temperature === bounds.onlyTemperature ? undefined : 'temperature';
}
