// What votes and evidence come to. In: votes and evidence. Out: a verdict, the share that agrees with it, and what it
// rests on. It decides nothing from text.
import type { Verdict } from './verdict-value.js';
import { pool, type PoolWeights } from './reading/pool.js';
import type { Likelihoods } from './scored/score.js';

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
  /** How likely the next state is under each verdict's examples, where that was asked. */
  readonly likelihoods?: Likelihoods;
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
  'words',
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
  const certain = evidence.filter(({ name }) => name !== 'words');
  const structured = certain.filter(({ name }) => name !== 'wording');
  const speaking = structured.length > 0 ? structured : certain;
  const [first, ...rest] = speaking;
  if (first === undefined) return undefined;
  return rest.every(({ verdict }) => verdict === first.verdict) ? first.verdict : undefined;
}

/** What the words of a next state say, and how they are weighed against the rest. */
export interface Reading {
  readonly words: Likelihoods;
  readonly withVotes: PoolWeights | undefined;
  readonly withoutVotes: PoolWeights;
  /** What a machine says in its fields is outvoted by no word. */
  readonly evidenceDecides: boolean;
}

/**
 * With a reading, votes, words and evidence are weighed. Without one evidence speaks first, and the votes where it is
 * silent.
 */
export function combine(evidence: readonly EvidenceVote[], votes: readonly CastVote[], reading?: Reading): Outcome {
  const tally = majority(votes);
  const shown = evidenceVerdict(evidence);
  const found = reading === undefined ? shown : weigh(reading, shown, votes);
  if (found === undefined) return { ...tally, restsOn: votes.length === 0 ? 'evidence' : 'votes' };
  const verdicts = votes.flatMap((vote) => (vote.valid ? [vote.verdict] : []));
  const confidence = verdicts.length === 0 ? 1 : countOf(verdicts, found) / verdicts.length;
  const restsOnVotes = shown !== found && verdicts.length > 0 && tally.verdict === found;
  return { verdict: found, confidence, restsOn: restsOnVotes ? 'votes' : 'evidence' };
}

function weigh(reading: Reading, shown: Verdict | undefined, votes: readonly CastVote[]): Verdict {
  const { words, withVotes, withoutVotes, evidenceDecides } = reading;
  if (shown !== undefined && evidenceDecides) return shown;
  const asked = meanLikelihoods(votes);
  return asked === undefined || withVotes === undefined
    ? pool(withoutVotes, { votes: undefined, words, evidence: shown })
    : pool(withVotes, { votes: asked, words, evidence: shown });
}

function meanLikelihoods(votes: readonly CastVote[]): Likelihoods | undefined {
  const asked = votes.flatMap((vote) => (vote.valid && vote.likelihoods !== undefined ? [vote.likelihoods] : []));
  if (asked.length === 0) return undefined;
  const mean = (label: keyof Likelihoods) => asked.reduce((sum, found) => sum + found[label], 0) / asked.length;
  return { satisfied: mean('satisfied'), unrelated: mean('unrelated'), correction: mean('correction') };
}

/** Mean of the valid votes, 0 without any. */
export function meanVote(votes: readonly CastVote[]): number {
  const verdicts: readonly number[] = votes.flatMap((vote) => (vote.valid ? [vote.verdict] : []));
  return verdicts.length === 0 ? 0 : verdicts.reduce((sum, verdict) => sum + verdict, 0) / verdicts.length;
}

function countOf(verdicts: readonly Verdict[], wanted: Verdict): number {
  return verdicts.filter((verdict) => verdict === wanted).length;
}
