// May this turn be trained on, and if not, why?
//
// In: what the caller wishes, what was captured, and how the turn went. Out: the consent with who decided, and every
// reason against, from a fixed list; none means trainable. Pure.
import { judgeCapture, type Capture, type UntrainableReason as CaptureReason } from '@backtalk/dialects';
import type { Consent } from '@backtalk/proto/facts';

type UntrainableReason =
  | CaptureReason
  | 'opted_out'
  | 'sampler_not_plain'
  | 'pinned_version'
  | 'has_media'
  | 'version_changed'
  | 'other_version'
  | 'engine_failed'
  | 'logprobs_untrue'
  | 'no_room';

/** How an answer came to its end. */
export type Ending = 'complete' | 'aborted' | 'engine_failed';

interface TurnCircumstances {
  readonly ending: Ending;
  readonly consents: boolean;
  readonly plainSampler: boolean;
  readonly pinned: boolean;
  readonly hasMedia: boolean;
  /** The version that the engine was asked for. */
  readonly versionAsked: string;
  /** What the engine itself said, in the first frame and in the last. */
  readonly versionAtStart: string;
  readonly versionAtEnd: string;
  /** The engine's own scoring does not confirm the logprobs that it gives. */
  readonly logprobsUntrue: boolean;
  /** The gateway had no room to keep its ids and logprobs. */
  readonly lackedRoom: boolean;
}

export function reasonsAgainst(capture: Capture, turn: TurnCircumstances): UntrainableReason[] {
  const reasons = new Set<UntrainableReason>();
  // An answer that was cut has no counts to compare: only the cut is reported. Nor has one whose ids were let go.
  if (turn.ending !== 'complete') reasons.add(turn.ending);
  else if (turn.lackedRoom) reasons.add('no_room');
  else for (const reason of judgeCapture(capture).reasons) reasons.add(reason);
  if (!turn.consents) reasons.add('opted_out');
  if (!turn.plainSampler) reasons.add('sampler_not_plain');
  if (turn.pinned) reasons.add('pinned_version');
  if (turn.hasMedia) reasons.add('has_media');
  if (turn.logprobsUntrue) reasons.add('logprobs_untrue');
  if (turn.versionAtStart !== turn.versionAtEnd) reasons.add('version_changed');
  // An answer that never began names no weights.
  if (turn.versionAtStart !== turn.versionAsked && (turn.ending === 'complete' || turn.versionAtStart !== ''))
    reasons.add('other_version');
  return [...reasons];
}

/** What a loader found out when it asked: an engine that gives logprobs and scores, and the two do not agree. */
export function areLogprobsUntrue(capabilities: readonly string[]): boolean {
  const has = (name: string) => capabilities.includes(name);
  return has('logprobs') && has('prompt_logprobs') && !has('true_logprobs');
}

interface ConsentSources {
  readonly keyTrains: boolean;
  /** The header X-Backtalk-Train. */
  readonly requestHeader: string | undefined;
  /** False when the turn that this one continues, or its session, was opted out. */
  readonly sessionTrains: boolean;
}

/** Words of a header that mean it; any other means the opposite. */
export const yes: ReadonlySet<string> = new Set(['on', 'true', '1', 'yes']);

/**
 * One "no" is enough, and an unclear word counts as one. What follows a "no" is not trained on until the person says yes;
 * an empty header says nothing.
 */
export function consentOf({ keyTrains, requestHeader = '', sessionTrains }: ConsentSources): Consent {
  const said = requestHeader.trim().toLowerCase();
  if (!keyTrains) return { train: false, source: 'key' };
  if (said !== '') return { train: yes.has(said), source: 'request' };
  return sessionTrains ? { train: true, source: 'default' } : { train: false, source: 'session' };
}
