// Facts that the collector takes: requests that opened, answers that completed, turns that are withheld, sessions that a client ended.
import type { FactHandler, StoredFact } from '@backtalk/kit';
import { SessionClosed_Reason } from '@backtalk/proto/facts';
import { beganAfter } from '../domain/parent.js';
import { answerInSession } from '../domain/placement.js';
import { linkTurn, type AnswersTaken, type LinkParts } from './link-turn.js';
import { collectorErrors } from '../errors.js';
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
    turnCompleted: (fact) => inTurn(() => takeCompleted(parts, fact)),
    turnWithheld: ({ message }) => parts.log.keepRefusal(message),
    sessionEnded: ({ message, trace, sequence }, { deliveries }) =>
      inTurn(async () => {
        // The session that the turn is in: after an end, its client's name leads to a new one.
        const entry = message.turn === '' ? undefined : await parts.index.turn(message.turn);
        const done = { reason: SessionClosed_Reason.REASON_DONE, trace };
        if (message.outcome !== undefined) {
          // Requests and answers come through other consumers, and what is closed is closed once.
          if (!(await turnsTaken(sequence))) throw collectorErrors.answersBehind({ turn: message.turn });
          const isPlaced = entry?.consent !== undefined && entry.completedSequence > 0;
          if (!isPlaced && deliveries < placedDeliveriesMax) throw collectorErrors.turnMissing({ turn: message.turn });
          const { outcome, session } = message;
          return closeSession(parts, entry?.session ?? session, { ...done, outcome });
        }
        const sessions = new Set([message.session, entry?.session ?? message.session]);
        for (const one of sessions) await closeSession(parts, one, done);
      }),
  };
}

/** Puts the answer into the index, then links the requests that waited for it. */
async function takeCompleted(parts: LinkParts, fact: StoredFact<'turnCompleted'>): Promise<void> {
  const { index, log } = parts;
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
  for (const awaited of [answerKey, answerInSession(session)])
    for (const waiting of await index.waiting(message, awaited)) {
      if (beganAfter(turn, waiting)) continue;
      const opened = await log.opened(message, waiting);
      if (opened !== undefined) await linkTurn(parts, opened);
      if ((await index.turn(waiting))?.parent !== '') await index.stopWaiting(message, awaited, waiting);
    }
}
