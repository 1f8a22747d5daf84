// The judgement of a turn as a fact. In: votes, evidence, the person's words. Out: the message, revision and all. Pure.
import { TurnJudged, TurnJudged_Source, type Outcome as AttemptOutcome } from '@backtalk/proto/facts';
import { hindsightOf, wishedFirst, type DropReason, type Hearing } from './hints/hindsight.js';
import type { Material, TurnPlace } from './material.js';
import { combine, type CastVote, type EvidenceVote, type Outcome, type Reading } from './verdict.js';

/** Who voted, and by which prompts. */
export interface JudgeMark {
  readonly model: string;
  readonly promptDigest: string;
}

const noWish = { text: '', stands: false, bare: false };

/** What can be said of a next state without any vote. */
export interface Findings {
  readonly evidence: readonly EvidenceVote[];
  /** Only where words are read in place of votes. */
  readonly reading?: Reading | undefined;
}

export interface Judgement {
  readonly message: TurnJudged;
  readonly outcome: Outcome;
  /** Hints that were not taken. */
  readonly dropped: readonly DropReason[];
}

export function judge(
  material: Material,
  votes: readonly CastVote[],
  { evidence, reading }: Findings,
  mark: JudgeMark,
  hearing: Hearing,
): Judgement {
  const outcome = combine(evidence, votes, reading);
  const spoken = combine([], votes, reading).verdict;
  const given = { verdict: outcome.verdict, spoken };
  const { hint, others = [], stands, wished, told, dropped } = hindsightOf(material, votes, given, hearing);
  // What was said last of all that stands counts.
  const wish = stands ? wished : wishedFirst(material, hearing.standing);
  const message = TurnJudged.fromPartial({
    ...material.place,
    ...judgeFields(mark),
    revision: 0,
    votes: votes.map(wireVote),
    verdict: outcome.verdict,
    confidence: outcome.confidence,
    hint,
    otherHints: [...others],
    stands,
    wish: wish !== undefined ? { text: wish, stands: true, bare: false } : told === true ? noWish : undefined,
    evidence: reading === undefined ? [...evidence] : [...evidence, reading.words],
    source: outcome.restsOn === 'evidence' ? TurnJudged_Source.SOURCE_EVIDENCE : TurnJudged_Source.SOURCE_VOTES,
  });
  return { message, outcome, dropped };
}

export function judgeFields({ model, promptDigest }: JudgeMark) {
  return { judgeModel: model, promptDigest };
}

export function wireVote(vote: CastVote) {
  const { seed } = vote;
  return vote.valid
    ? { verdict: vote.verdict, valid: true, reason: '', seed, score: vote.verdict, hint: vote.hint }
    : { verdict: 0, valid: false, reason: vote.reason, seed, score: 0, hint: '' };
}

/**
 * Of an answer that nothing followed.
 *
 * @param wish what stands of the words that it answers
 */
export function unspoken(place: TurnPlace, wish = ''): TurnJudged {
  const heard = wish === '' ? {} : { wish: { text: wish, stands: true, bare: false } };
  return TurnJudged.fromPartial({ ...place, ...heard, source: TurnJudged_Source.SOURCE_OUTCOME });
}

/** What was said of the answer by itself stays as it is, and how the attempt went stands beside it. */
export function withOutcome(
  before: TurnJudged,
  session: string,
  revision: number,
  outcome: AttemptOutcome,
): TurnJudged {
  // Feedback that came before any continuation knows the session by the gateway's reading.
  return { ...before, session, revision, outcome };
}
