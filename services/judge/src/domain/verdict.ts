// What votes and evidence come to. In: votes and evidence. Out: a verdict, the share that agrees with it, and what it
// rests on. It decides nothing from text.

export type Verdict = -1 | 0 | 1;

/** Why a vote has no verdict. */
export type NullReason = 'timeout' | 'unparsable' | 'engine' | 'uncalibrated' | 'refused';

export type CastVote = ValidVote | NullVote;

interface VotePlace {
  readonly seed: number;
}

export interface ValidVote extends VotePlace {
  readonly valid: true;
  readonly verdict: Verdict;
  /** Behind a scored choice: above 0 leans to satisfied, below 0 to correction. */
  readonly score: number;
  /** As the judge's model wrote it; not yet accepted. */
  readonly hint: string;
}

export interface NullVote extends VotePlace {
  readonly valid: false;
  readonly reason: NullReason;
}

export const evidenceNames = [
  'exit_code',
  'http_status',
  'tool_error',
  'test_verdict',
  'regenerated',
  'wording',
  'feedback',
] as const;
export type EvidenceName = (typeof evidenceNames)[number];

export interface EvidenceVote {
  readonly name: EvidenceName;
  readonly verdict: Verdict;
  /** Few-valued: a code or the name of a rule, never text of the next state. */
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

export function verdictOf(value: number): Verdict {
  if (value > 0) return 1;
  return value < 0 ? -1 : 0;
}

/** Majority of the valid votes; a tie or no valid vote gives 0. */
export function majority(votes: readonly CastVote[]): Tally {
  const verdicts = votes.flatMap((vote) => (vote.valid ? [vote.verdict] : []));
  if (verdicts.length === 0) return { verdict: 0, confidence: 0 };
  const counts = ([-1, 0, 1] as const).map((verdict) => ({ verdict, count: countOf(verdicts, verdict) }));
  const most = Math.max(...counts.map(({ count }) => count));
  const winners = counts.filter(({ count }) => count === most);
  const [winner] = winners;
  if (winner === undefined || winners.length > 1) return { verdict: 0, confidence: most / verdicts.length };
  return { verdict: winner.verdict, confidence: winner.count / verdicts.length };
}

/** Evidence that agrees with itself; pieces that contradict each other say nothing. */
export function evidenceVerdict(evidence: readonly EvidenceVote[]): Verdict | undefined {
  const structured = evidence.filter(({ name }) => name !== 'wording');
  const speaking = structured.length > 0 ? structured : evidence;
  const [first, ...rest] = speaking;
  if (first === undefined) return undefined;
  return rest.every(({ verdict }) => verdict === first.verdict) ? first.verdict : undefined;
}

/** Evidence speaks first, because it is right more often than a small model; where it is silent, the votes decide. */
export function combine(evidence: readonly EvidenceVote[], votes: readonly CastVote[]): Outcome {
  const tally = majority(votes);
  const shown = evidenceVerdict(evidence);
  if (shown === undefined) return { ...tally, restsOn: votes.length === 0 ? 'evidence' : 'votes' };
  const verdicts = votes.flatMap((vote) => (vote.valid ? [vote.verdict] : []));
  const confidence = verdicts.length === 0 ? 1 : countOf(verdicts, shown) / verdicts.length;
  return { verdict: shown, confidence, restsOn: 'evidence' };
}

/** Mean of the valid votes, 0 without any. */
export function meanVote(votes: readonly CastVote[]): number {
  const verdicts: readonly number[] = votes.flatMap((vote) => (vote.valid ? [vote.verdict] : []));
  return verdicts.length === 0 ? 0 : verdicts.reduce((sum, verdict) => sum + verdict, 0) / verdicts.length;
}

function countOf(verdicts: readonly Verdict[], wanted: Verdict): number {
  return verdicts.filter((verdict) => verdict === wanted).length;
}
