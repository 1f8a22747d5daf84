// A session is over: where it was an attempt at a task, each of its turns is told how that went; of one with a single answer, after which
// nothing was said, a wish in its first words is heard; of any other, where none of its turns would train, the at-least-one rule looks
// for the best of them.
import type { Delivery, StoredFact, Trace } from '@backtalk/kit';
import {
  TurnJudged_Source,
  type Outcome,
  type SessionClosed,
  type TurnContinued,
  type TurnJudged,
} from '@backtalk/proto/facts';
import { agreedAdvantage, bestCandidate, isEffective, keepCandidate, leaningOf } from '../domain/at-least-one.js';
import { wishedFirst } from '../domain/hints/hindsight.js';
import { unspoken, withOutcome, type JudgeMark } from '../domain/judgement.js';
import type { TurnPlace } from '../domain/material.js';
import { meanVote, type CastVote } from '../domain/verdict.js';
import { verdictOf } from '../domain/verdict-value.js';
import { judgeErrors } from '../errors.js';
import type { Judgement } from '../outputs/vote-queue.js';
import type { JudgeParts } from './parts.js';
import { evidenceOnly, isJudgeable, votingOn } from './turn-continued.js';

/** A longer session is judged by its last turns. */
const turnsMax = 64;
/** Of a longer attempt, the last. */
const stepsMax = 1_024;
/** After so many deliveries an attempt goes without a turn that has no judgement: votes that come later find the outcome there. */
const deliveriesMax = 6;
/** Votes may wait for their engine: a session is looked at so often, later and later, for half an hour in all; a fact that came more often would be taken for poison. */
const looksMax = 24;
const lookAgainFirstMs = 2_000;
const lookAgainMostMs = 120_000;

export async function sessionClosed(
  parts: JudgeParts,
  { message, trace, timeMs }: StoredFact<'sessionClosed'>,
  { deliveries, signal, hold }: Delivery,
): Promise<void> {
  const { config, events, turns } = parts;
  if (message.outcome !== undefined) return attemptOver(parts, message, message.outcome, trace, deliveries);
  if (message.alone !== '') return answeredAlone(parts, message, trace);
  if (config.atLeastOne === 'off') return events.sessionClosed('off');
  const { judged, continued, isWhole } = await readSession(parts, message);
  // It gives up its place meanwhile: others are not held up by it.
  if (!isWhole && deliveries < looksMax)
    return hold().release(Math.min(lookAgainMostMs, lookAgainFirstMs * 2 ** (deliveries - 1)));
  if (judged.some((one) => isEffective(one))) return events.sessionClosed('effective');
  const candidate = bestCandidate(judged);
  if (candidate === undefined) return events.sessionClosed('nothing');
  const leaning = leaningOf(candidate);
  if (config.atLeastOne === 'always' && leaning !== 0) return keep(parts, candidate, leaning, [], evidenceOnly, trace);
  const at = continued.findIndex(({ turn }) => turn === candidate.turn);
  const fact = continued[at];
  const material = fact === undefined ? undefined : await turns.material(fact);
  const voting = material === undefined ? undefined : votingOn(parts, material, timeMs);
  if (voting === undefined) return events.sessionClosed('votes_disagree');
  const { tenant, user, policy, turn } = candidate;
  // Votes have the rest of the session as hindsight.
  const later = continued.slice(at + 1).map((one) => one.turn);
  await voting.queue.decide({ kind: 'closed', tenant, user, policy, turn, later }, trace, signal);
}

/** What continues the answer after all is judged above this, and brings the same wish. */
async function answeredAlone(
  { turns, judgements, standing, events }: JudgeParts,
  { tenant, user, policy, session, alone }: SessionClosed,
  trace: Trace,
): Promise<void> {
  const ids = { tenant, user, turn: alone };
  const [opened, continued] = await Promise.all([turns.openedIfThere(ids), turns.continued(ids)]);
  const mayBeHeard =
    opened !== undefined && continued === undefined && (await turns.withheld(opened, continued)) === undefined;
  const wish = mayBeHeard ? wishedFirst(await turns.begun(ids), standing) : undefined;
  if (wish === undefined) return events.sessionClosed('nothing');
  const place = { ...ids, policy: opened?.policy || policy, session };
  const make = (revision: number): TurnJudged => ({ ...unspoken(place, wish), revision });
  await judgements.append(place, { isThere: () => true, make }, trace);
  events.sessionClosed('heard');
}

/** Keeps the candidate with what its fresh votes say, where they say something. */
export async function keepAgreed(
  parts: JudgeParts,
  judgement: Judgement,
  votes: readonly CastVote[],
  mark: JudgeMark,
  trace: Trace,
): Promise<void> {
  const candidate = await parts.judgements.highest(judgement);
  const advantage = parts.config.atLeastOne === 'always' ? meanVote(votes) : agreedAdvantage(votes);
  if (candidate === undefined || advantage === undefined || advantage === 0)
    return parts.events.sessionClosed('votes_disagree');
  await keep(parts, candidate, advantage, votes, mark, trace);
}

async function keep(
  { judgements, events }: JudgeParts,
  candidate: TurnJudged,
  advantage: number,
  votes: readonly CastVote[],
  mark: JudgeMark,
  trace: Trace,
): Promise<void> {
  const stored = await judgements.append(
    candidate,
    {
      isThere: ({ source }) => source === TurnJudged_Source.SOURCE_AT_LEAST_ONE,
      make: (revision, before) =>
        // Feedback may have come in the meantime.
        before !== undefined && isEffective(before)
          ? undefined
          : keepCandidate(before ?? candidate, revision, advantage, votes, mark),
    },
    trace,
  );
  if (stored === undefined) return events.sessionClosed('effective');
  events.turnJudged(
    'at_least_one',
    { verdict: verdictOf(stored.verdict), confidence: stored.confidence },
    { ...stored, hint: '' },
  );
  events.sessionClosed('kept');
}

/** What each step was worth is the trainer's to say, which knows the other attempts. */
async function attemptOver(
  parts: JudgeParts,
  message: SessionClosed,
  { score, attempts }: Outcome,
  trace: Trace,
  deliveries: number,
): Promise<void> {
  const { judgements, events } = parts;
  const steps = await stepsOf(parts, message, deliveries);
  const outcome = { score, attempts, turns: steps.length };
  for (const step of steps) {
    await judgements.append(
      step,
      {
        isThere: (judged) => judged.outcome !== undefined,
        make: (revision, before) => withOutcome(before ?? unspoken(step), step.session, revision, outcome),
      },
      trace,
    );
  }
  events.sessionClosed('outcome');
}

/** Those of which may be learned, oldest first. */
async function stepsOf(
  { turns: log, judgements }: JudgeParts,
  { tenant, user, policy, session, turns }: SessionClosed,
  deliveries: number,
): Promise<TurnPlace[]> {
  const steps: TurnPlace[] = [];
  for (const turn of turns.slice(-stepsMax)) {
    const ids = { tenant, user, turn };
    const isLate = deliveries >= deliveriesMax;
    const [opened, continued] = await Promise.all([log.openedIfThere(ids), log.continued(ids)]);
    // A request that is not in the log by now never comes: the other steps have their outcome all the same.
    if (opened === undefined && !isLate) throw judgeErrors.sessionNotJudged();
    if (opened === undefined) continue;
    if ((await log.withheld(opened, continued)) !== undefined) continue;
    const step = { ...ids, policy: opened.policy || policy, session };
    const isVotedOn = continued !== undefined && isJudgeable(continued) === undefined;
    if (isVotedOn && !isLate && (await judgements.highest(step)) === undefined) throw judgeErrors.sessionNotJudged();
    steps.push(step);
  }
  return steps;
}

interface SessionTurns {
  /** Whether each of its turns that may be judged is. */
  readonly isWhole: boolean;
  readonly judged: readonly TurnJudged[];
  readonly continued: readonly TurnContinued[];
}

async function readSession(
  { turns: log, judgements }: JudgeParts,
  { tenant, user, policy, turns }: SessionClosed,
): Promise<SessionTurns> {
  let isWhole = true;
  const judged: TurnJudged[] = [];
  const continued: TurnContinued[] = [];
  for (const turn of turns.slice(-turnsMax)) {
    const fact = await log.continued({ tenant, user, turn });
    if (fact === undefined || isJudgeable(fact) !== undefined) continue;
    continued.push(fact);
    const found = await judgements.highest({ tenant, user, policy: fact.policy || policy, turn });
    if (found !== undefined) judged.push(found);
    else isWhole = false;
  }
  return { isWhole, judged, continued };
}
