// A session is over: where none of its turns would train, the at-least-one rule looks for the best of them.
import type { Delivery, StoredFact } from '@backtalk/kit';
import {
  Provenance,
  TurnJudged_Source,
  type SessionClosed,
  type TurnContinued,
  type TurnJudged,
} from '@backtalk/proto/facts';
import { agreedAdvantage, bestCandidate, isEffective, keepCandidate, leaningOf } from '../domain/at-least-one.js';
import type { Material } from '../domain/material.js';
import type { Role } from '../domain/next-state.js';
import { meanVote, type CastVote } from '../domain/verdict.js';
import { verdictOf } from '../domain/verdict-value.js';
import { judgeErrors } from '../errors.js';
import type { JudgeParts } from './parts.js';
import { ballotsFor, isJudgeable } from './turn-continued.js';

const provenanceOf: Readonly<Record<Role, Provenance>> = {
  user: Provenance.PROVENANCE_USER,
  tool: Provenance.PROVENANCE_TOOL,
  environment: Provenance.PROVENANCE_ENVIRONMENT,
};
/** A longer session is judged by its last turns. */
const turnsMax = 64;
/** After so many deliveries a turn that has no judgement will not get one. */
const deliveriesMax = 6;

export async function sessionClosed(
  parts: JudgeParts,
  { message, trace, timeMs }: StoredFact<'sessionClosed'>,
  delivery: Delivery,
): Promise<void> {
  const { config, events } = parts;
  if (config.atLeastOne === 'off') return events.sessionClosed('off');
  const { judged, continued } = await readSession(parts, message, delivery.deliveries);
  if (judged.some((one) => isEffective(one))) return events.sessionClosed('effective');
  const candidate = bestCandidate(judged);
  if (candidate === undefined) return events.sessionClosed('nothing');
  const kept = await advantageOf(parts, candidate, continued, { ...delivery, trace, timeMs });
  if (kept === undefined) return events.sessionClosed('votes_disagree');
  const mark = parts.box?.facts() ?? { model: 'rules', promptDigest: '', low: 0, high: 0 };
  const stored = await parts.judgements.append(
    candidate,
    {
      isThere: ({ source }) => source === TurnJudged_Source.SOURCE_AT_LEAST_ONE,
      make: (revision, before) =>
        // Somebody may have spoken in the meantime.
        before !== undefined && isEffective(before)
          ? undefined
          : keepCandidate(before ?? candidate, revision, kept.advantage, kept.votes, mark),
    },
    trace,
  );
  if (stored === undefined) return events.sessionClosed('effective');
  events.turnJudged('at_least_one', { verdict: verdictOf(stored.verdict), confidence: stored.confidence }, '');
  events.sessionClosed('kept');
}

interface SessionTurns {
  readonly judged: readonly TurnJudged[];
  readonly continued: readonly TurnContinued[];
}

async function readSession(
  { log, judgements }: JudgeParts,
  { tenant, user, policy, turns }: SessionClosed,
  deliveries: number,
): Promise<SessionTurns> {
  const judged: TurnJudged[] = [];
  const continued: TurnContinued[] = [];
  for (const turn of turns.slice(-turnsMax)) {
    const fact = await log.continued({ tenant, user, turn });
    if (fact === undefined || isJudgeable(fact) !== undefined) continue;
    continued.push(fact);
    const found = await judgements.highest({ tenant, user, policy: fact.policy || policy, turn });
    if (found !== undefined) judged.push(found);
    else if (deliveries < deliveriesMax) throw judgeErrors.sessionNotJudged();
  }
  return { judged, continued };
}

interface Kept {
  readonly advantage: number;
  readonly votes: readonly CastVote[];
}

async function advantageOf(
  parts: JudgeParts,
  candidate: TurnJudged,
  continued: readonly TurnContinued[],
  delivered: Pick<Delivery, 'deliveries' | 'signal'> & Pick<StoredFact<'sessionClosed'>, 'trace' | 'timeMs'>,
): Promise<Kept | undefined> {
  const { config, log } = parts;
  const leaning = leaningOf(candidate);
  if (config.atLeastOne === 'always' && leaning !== 0) return { advantage: leaning, votes: [] };
  const fact = continued.find(({ turn }) => turn === candidate.turn);
  const material = fact === undefined ? undefined : await log.material(fact);
  if (material === undefined) return undefined;
  const ballots = ballotsFor(parts, material, delivered.timeMs);
  if (ballots === undefined) return undefined;
  const votes = await ballots.castAll(withHindsight(material, continued), delivered);
  const advantage = config.atLeastOne === 'always' ? meanVote(votes) : agreedAdvantage(votes);
  return advantage === undefined || advantage === 0 ? undefined : { advantage, votes };
}

/** The whole rest of the session as the next state: what its role says in this turn and all later ones. */
function withHindsight(material: Material, continued: readonly TurnContinued[]): Material {
  const at = continued.findIndex(({ turn }) => turn === material.place.turn);
  const later = continued
    .slice(at + 1)
    .flatMap(({ nextState }) => nextState)
    .filter(({ provenance }) => provenance === provenanceOf[material.next.role])
    .map(({ text }) => text);
  return { ...material, next: { ...material.next, text: [material.next.text, ...later].join('\n') } };
}
