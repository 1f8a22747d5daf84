// What votes and evidence come to. In: votes and evidence. Out: a verdict, the share of the votes that agrees with it,
// and what it rests on. It decides nothing from text: what a machine says in its fields stands above every vote, and
// below it the votes alone decide.
import type { Verdict } from './verdict-value.js';

/** Why a vote has no verdict; `cut`: its answer was, before the grade; `given_up`: two engines ended while they had votes of its turn. */
export type NullReason = 'timeout' | 'unparsable' | 'cut' | 'engine' | 'given_up' | 'refused' | 'untrusted' | 'no_room';

export type CastVote = ValidVote | NullVote;

export interface ValidVote {
  readonly seed: number;
  readonly valid: true;
  readonly verdict: Verdict;
  /** As the judge's model wrote it; not yet accepted. */
  readonly hint: string;
}

export interface NullVote {
  readonly seed: number;
  readonly valid: false;
  readonly reason: NullReason;
}

/** A verdict as a name. */
export const labels = ['satisfied', 'unrelated', 'correction'] as const;
export type Label = (typeof labels)[number];
/** Logarithms, by verdict. */
export type Likelihoods = Readonly<Record<Label, number>>;

export const labelOf: Readonly<Record<Verdict, Label>> = { '1': 'satisfied', '0': 'unrelated', '-1': 'correction' };
export const verdictFrom: Readonly<Record<Label, Verdict>> = { satisfied: 1, unrelated: 0, correction: -1 };

type EvidenceName =
  | 'exit_code'
  | 'http_status'
  | 'tool_error'
  | 'test_verdict'
  | 'tool_refused'
  | 'regenerated'
  | 'stopped'
  | 'words'
  | 'feedback';

export interface EvidenceVote {
  /** On the wire; `words` is the record of a reading, and `feedback` that of a later revision. */
  readonly name: EvidenceName;
  readonly verdict: Verdict;
  /** Few-valued: a code or the name of a field, never text of the next state. */
  readonly detail: string;
}

export interface Tally {
  readonly verdict: Verdict;
  /** Share of the valid votes that agree with the verdict, 0 to 1. */
  readonly confidence: number;
}

export interface Outcome extends Tally {
  readonly restsOn: 'votes' | 'evidence';
}

/** Majority of the valid votes; a tie or no valid vote gives 0. */
export function majority(votes: readonly CastVote[]): Tally {
  const verdicts = verdictsOf(votes);
  if (verdicts.length === 0) return { verdict: 0, confidence: 0 };
  const counts = ([-1, 0, 1] as const).map((verdict) => ({ verdict, count: countOf(verdicts, verdict) }));
  const most = Math.max(...counts.map(({ count }) => count));
  const winners = counts.filter(({ count }) => count === most);
  const [winner] = winners;
  if (winner === undefined || winners.length > 1) return { verdict: 0, confidence: most / verdicts.length };
  return { verdict: winner.verdict, confidence: winner.count / verdicts.length };
}

/**
 * Evidence that agrees with itself; pieces that contradict each other say nothing. An answer that was stopped is recorded and decides
 * nothing: a person may have had enough of it, or their line was cut.
 */
export function evidenceVerdict(evidence: readonly EvidenceVote[]): Verdict | undefined {
  const [first, ...rest] = evidence.filter(({ name }) => name !== 'stopped');
  if (first === undefined) return undefined;
  return rest.every(({ verdict }) => verdict === first.verdict) ? first.verdict : undefined;
}

/** Of the words of a next state, where no model votes. */
export interface Reading {
  /** What the words say before they are weighed, for the record. */
  readonly words: EvidenceVote;
  readonly verdict: Verdict;
  /** The logarithms of how probable each verdict is. */
  readonly odds: Likelihoods;
}

/** Evidence decides where it speaks; elsewhere words do where they are read, or else the majority. */
export function combine(evidence: readonly EvidenceVote[], votes: readonly CastVote[], reading?: Reading): Outcome {
  const tally = majority(votes);
  const fields = evidenceVerdict(evidence);
  const verdict = fields ?? reading?.verdict;
  if (verdict === undefined) return { ...tally, restsOn: votes.length === 0 ? 'evidence' : 'votes' };
  const verdicts = verdictsOf(votes);
  const confidence = verdicts.length === 0 ? 1 : countOf(verdicts, verdict) / verdicts.length;
  return { verdict, confidence, restsOn: 'evidence' };
}

/** Mean of the valid votes, 0 without any. */
export function meanVote(votes: readonly CastVote[]): number {
  const verdicts: readonly number[] = verdictsOf(votes);
  return verdicts.length === 0 ? 0 : verdicts.reduce((sum, verdict) => sum + verdict, 0) / verdicts.length;
}

function verdictsOf(votes: readonly CastVote[]): Verdict[] {
  return votes.flatMap((vote) => (vote.valid ? [vote.verdict] : []));
}

function countOf(verdicts: readonly Verdict[], wanted: Verdict): number {
  return verdicts.filter((verdict) => verdict === wanted).length;
}
