// Facts that the collector takes: requests that opened, answers that completed, turns that are withheld, sessions that a client ended.
import { asBacktalkError, type BacktalkError, type FactHandler, type StoredFact } from '@backtalk/kit';
import { SessionClosed_Reason } from '@backtalk/proto/facts';
import { beganAfter } from '../domain/parent.js';
import { answerInSession, answerOfTurn } from '../domain/placement.js';
import { isGone, linkTurn, type AnswersTaken, type LinkParts } from './link-turn.js';
import { collectorErrors } from '../errors.js';
import type { Owner } from '../outputs/turn-index.js';
import { closeSession, type InTurn } from './sessions.js';

/** What lies in a gateway's spool comes later than its end; what is not there by then, seconds later, is not waited for. */
const placedDeliveriesMax = 6;

export const collectorFacts = ['turnOpened', 'turnCompleted', 'turnWithheld', 'sessionEnded'] as const;

type Handlers = { readonly [N in (typeof collectorFacts)[number]]: FactHandler<N> };

/** Whether all of the log up to a sequence is in the index. */
interface Taken {
  readonly answersTaken: AnswersTaken;
  readonly turnsTaken: AnswersTaken;
}

export function collectorHandlers(parts: LinkParts, inTurn: InTurn, { answersTaken, turnsTaken }: Taken): Handlers {
  return {
    turnOpened: (fact) => inTurn(() => linkTurn(parts, fact, answersTaken)),
    turnCompleted: (fact, { deliveries }) => inTurn(() => takeCompleted(parts, fact, deliveries)),
    turnWithheld: ({ message }) => parts.log.keepRefusal(message),
    sessionEnded: ({ message, trace, sequence }, { deliveries }) =>
      inTurn(async () => {
        // The session that the turn is in: after an end, its client's name leads to a new one.
        const entry = message.turn === '' ? undefined : await parts.index.turn(message.turn);
        const isPlaced = message.turn === '' || (entry?.consent !== undefined && entry.completedSequence > 0);
        // Requests and answers come through other consumers, and what is closed is closed once.
        if (!isPlaced && !(await turnsTaken(sequence))) throw collectorErrors.answersBehind({ turn: message.turn });
        if (!isPlaced && deliveries < placedDeliveriesMax) throw collectorErrors.turnMissing({ turn: message.turn });
        const done = { reason: SessionClosed_Reason.REASON_DONE, trace };
        const { outcome, session } = message;
        if (outcome !== undefined) return closeSession(parts, entry?.session ?? session, { ...done, outcome });
        const sessions = new Set([message.session, entry?.session ?? message.session]);
        for (const one of sessions) await closeSession(parts, one, done);
      }),
  };
}

/** What a waiting request builds on may lie in a spool, or lag in a store; what is not there by then, seconds later, is passed over. */
const waitingDeliveriesMax = 5;

/** Puts the answer into the index, then links the requests that waited for it. What one of them lacks keeps neither the answer nor the others. */
async function takeCompleted(parts: LinkParts, fact: StoredFact<'turnCompleted'>, deliveries: number): Promise<void> {
  const { index } = parts;
  const { message, sequence, timeMs } = fact;
  const { turn, tenant, user, policy, answerKey } = message;
  const known = (await index.turn(turn))?.session ?? '';
  const session = known === '' ? message.provisionalSession : known;
  await index.putTurn(turn, { tenant, user, policy, session, completedSequence: sequence });
  if (session !== '') {
    await index.touchSession(session, message, timeMs);
    await index.addSessionAnswer(session, turn, sequence);
  }
  if (answerKey !== '') await index.addAnswer(message, answerKey, turn, sequence);
  const failures: BacktalkError[] = [];
  for (const awaited of [answerKey, answerInSession(session), answerOfTurn(turn)])
    for (const waiting of await index.waiting(message, awaited)) {
      if (beganAfter(turn, waiting)) continue;
      const failure = await linkWaiting(parts, message, waiting).then(() => undefined, asBacktalkError);
      // It waits on, for this answer when it is delivered again, or for another that goes by the same name.
      if (failure !== undefined) failures.push(failure);
      else if ((await index.turn(waiting))?.parent !== '') await index.stopWaiting(message, awaited, waiting);
    }
  for (const failure of failures) parts.events.waitingFailed(failure, deliveries);
  const again = failures.find(
    (error) => !isGone(error) || (error.retry !== 'never' && deliveries < waitingDeliveriesMax),
  );
  if (again !== undefined) throw again;
}

async function linkWaiting(parts: LinkParts, owner: Owner, waiting: string): Promise<void> {
  const opened = await parts.log.opened(owner, waiting);
  if (opened !== undefined) await linkTurn(parts, opened);
}
