// The judgement of a turn as a fact. In: votes, evidence, hint candidates. Out: the message, revision and all. Pure.
import { TurnJudged, TurnJudged_Source } from '@backtalk/proto/facts';
import { chooseHint, type HintChoice } from './hints/choose.js';
import { isSaidBy } from './hints/said-by.js';
import type { Material } from './material.js';
import { extractHint } from './small-model/hint-grammar.js';
import type { RoleWeights } from './small-model/reader.js';
import { combine, type CastVote, type EvidenceVote, type Outcome, type Reading } from './verdict.js';

/** Who voted, and by which prompts and thresholds. */
export interface JudgeMark {
  readonly model: string;
  readonly promptDigest: string;
  readonly low: number;
  readonly high: number;
  readonly weights?: RoleWeights;
}

/** What can be said of a next state without any vote. */
export interface Findings {
  readonly evidence: readonly EvidenceVote[];
  /** Only where the model that votes is too small to read. */
  readonly reading?: Reading | undefined;
}

export interface Judgement {
  readonly message: TurnJudged;
  readonly outcome: Outcome;
  /** Hints that votes wrote and the person did not say. */
  readonly unsaidHints: number;
}

/** A longer message may hold what another wrote: a word such as "always" in it is not enough. */
const ruleCharactersMax = 280;
/** What a person says of all answers, not of one. */
const standing = /\b(?:always|never|from now on|next time|in future|every (?:time|answer)|all your answers)\b/i;

export function judge(
  material: Material,
  votes: readonly CastVote[],
  { evidence, reading }: Findings,
  mark: JudgeMark,
  choice: HintChoice,
): Judgement {
  const outcome = combine(evidence, votes, reading);
  const { hint, unsaid } = hintOf(material, votes, outcome, choice, reading !== undefined);
  const message = TurnJudged.fromPartial({
    ...material.place,
    ...judgeFields(mark),
    revision: 0,
    votes: votes.map(wireVote),
    verdict: outcome.verdict,
    confidence: outcome.confidence,
    hint,
    evidence: reading === undefined ? [...evidence] : [...evidence, reading.words],
    source: outcome.restsOn === 'evidence' ? TurnJudged_Source.SOURCE_EVIDENCE : TurnJudged_Source.SOURCE_VOTES,
  });
  return { message, outcome, unsaidHints: unsaid };
}

/**
 * Only a person's own words may become a hint: where none spoke, there is none. Votes write it, and count where the person
 * said as much; a model that is too small to write has it quoted by a grammar.
 */
function hintOf(
  { next, answer }: Material,
  votes: readonly CastVote[],
  outcome: Outcome,
  choice: HintChoice,
  isSmallModel: boolean,
): { readonly hint: string; readonly unsaid: number } {
  const written = votes.flatMap((vote) => (vote.valid && vote.hint !== '' ? [vote.hint] : []));
  const said = next.role === 'user' ? written.filter((hint) => isSaidBy(hint, next.userText)) : [];
  const unsaid = written.length - said.length;
  if (next.role !== 'user') return { hint: '', unsaid };
  // "Now write it in Spanish" from a content user is the next task and no rule, unless it is said to be one, and little else.
  const saysRule = next.text.trim().length <= ruleCharactersMax && standing.test(next.userText);
  const isRule = outcome.verdict === -1 || saysRule;
  const candidates = isSmallModel && isRule ? [...said, extractHint(next.userText)] : said;
  return { hint: chooseHint(candidates, answer, choice), unsaid };
}

export function judgeFields({ model, promptDigest, low, high }: JudgeMark) {
  return { judgeModel: model, promptDigest, thresholdLow: low, thresholdHigh: high };
}

export function wireVote(vote: CastVote) {
  const { seed } = vote;
  return vote.valid
    ? { verdict: vote.verdict, valid: true, reason: '', seed, score: vote.score, hint: vote.hint }
    : { verdict: 0, valid: false, reason: vote.reason, seed, score: 0, hint: '' };
}
