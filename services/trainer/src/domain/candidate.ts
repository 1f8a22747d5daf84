// A judged turn that waits for a batch, with everything that the decision needs. Ids and messages are read again by the step.
import type { StoredFact, Trace } from '@backtalk/kit';
import { TurnJudged_Source, type ShownLessons, type TurnCompleted, type TurnJudged } from '@backtalk/proto/facts';

import { sketchOf, type AnswerSketch } from './near-duplicate.js';
import { neverTrainable, type SampleBounds, type TurnFacts } from './settle-reason.js';

export interface Candidate {
  readonly turn: string;
  readonly tenant: string;
  readonly user: string;
  /** Of the first judged fact that was seen: the order of arrival. */
  readonly sequence: number;
  readonly waitingSinceMs: number;
  /** Of the revision that counts. */
  readonly judgedAtMs: number;
  /** When what it is judged by was said: its next state, or feedback since; or its request, where that is all that was said. */
  readonly saidAtMs: number;
  readonly judged: TurnJudged;
  /** Of the turn's request, where it is known. */
  readonly trace: Trace | undefined;
  /** Set when the turn may never be trained on. */
  readonly reason: string | undefined;
  readonly version: string;
  /** Sampled greedily: no scalar reward, whatever was said. */
  readonly greedy: boolean;
  /** Cut by the token limit: the answer's end is not its own, so it is never praised. */
  readonly cut: boolean;
  /** The lessons that its answer was given with: then it is not what the policy says by itself. */
  readonly shown: ShownLessons['lessons'];
  /** Of the attempts at a task that its session is one of; empty: it is none. */
  readonly group: string;
  /** Answers before it in its request. */
  readonly step: number;
  readonly answerTokens: number;
  readonly sketch: AnswerSketch | undefined;
  /** Of its conversation and ids, at most; unknown until a batch would take it. */
  readonly bytes?: number;
  /** The revision in which it asks, in other words, for what its lesson was rehearsed for already. */
  readonly saidAgain?: number | undefined;
}

/** What a delivered fact says beside its message. */
type Judged = Pick<StoredFact<'turnJudged'>, 'message' | 'sequence' | 'timeMs'> & { readonly trace?: Trace };

export function candidateOf(
  { message: judged, sequence, timeMs, trace }: Judged,
  facts: TurnFacts,
  bounds: SampleBounds,
): Candidate {
  const reason = neverTrainable(judged, facts, bounds);
  const { opened, completed } = facts;
  return {
    turn: judged.turn,
    tenant: judged.tenant,
    user: judged.user,
    sequence,
    waitingSinceMs: timeMs,
    judgedAtMs: timeMs,
    saidAtMs: saidAt(judged, facts) ?? timeMs,
    judged,
    trace,
    reason,
    version: completed?.weightsVersion ?? '',
    greedy: isGreedy(completed),
    cut: isCut(completed),
    shown: completed?.shown?.lessons ?? [],
    group: opened?.group ?? '',
    step: opened?.answerKeys.length ?? 0,
    answerTokens: completed?.answerIds.length ?? 0,
    sketch:
      reason === undefined && completed !== undefined ? sketchOf(completed.promptIds, completed.answerIds) : undefined,
  };
}

function saidAt({ revision, source, outcome }: TurnJudged, facts: TurnFacts): number | undefined {
  const isUnspoken = source === TurnJudged_Source.SOURCE_OUTCOME && outcome === undefined;
  if (isUnspoken) return facts.openedMs;
  return revision === 0 ? facts.continuedMs : undefined;
}

/** As engines have it: what is sampled at less is the likeliest token, each time. */
const greedyBelow = 1e-5;

export function isGreedy(completed: TurnCompleted | undefined): boolean {
  const { temperature } = completed?.sampling ?? {};
  return temperature !== undefined && temperature < greedyBelow;
}

/** The bound on its tokens ended the answer. A parser of tool calls hides that: the engine says `tool_calls` then. */
export function isCut(completed: TurnCompleted | undefined): boolean {
  if (completed?.finishReason === 'length') return true;
  // 0 where the client left it open.
  const bound = completed?.sampling?.maxTokens ?? 0;
  return completed?.finishReason === 'tool_calls' && bound > 0 && completed.answerIds.length >= bound;
}
