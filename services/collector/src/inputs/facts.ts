// Facts that the collector takes: requests that opened, answers that completed, sessions that a client ended.
import type { FactHandler, StoredFact } from '@backtalk/kit';
import { SessionClosed_Reason } from '@backtalk/proto/facts';
import type { Rebuilder } from '../outputs/rebuild.js';
import { closeSession } from './close-session.js';
import type { Owner } from '../outputs/turn-index.js';
import { answerInSession, linkTurn, type AnswersTaken, type LinkParts } from './link-turn.js';
import type { OneAtATime } from './one-at-a-time.js';

export interface FactInputParts extends LinkParts {
  readonly rebuilder: Rebuilder;
  readonly order: OneAtATime;
  readonly answersTaken: AnswersTaken;
}

export const collectorFacts = ['turnOpened', 'turnCompleted', 'sessionEnded'] as const;

export function collectorHandlers(parts: FactInputParts): {
  readonly [N in (typeof collectorFacts)[number]]: FactHandler<N>;
} {
  const inTurn = <T>(work: () => Promise<T>) =>
    parts.order.run(async () => {
      await parts.rebuilder.ensureReady();
      return work();
    });
  return {
    turnOpened: (fact) => inTurn(() => linkTurn(parts, fact, parts.answersTaken)),
    turnCompleted: (fact) => inTurn(() => takeCompleted(parts, fact)),
    sessionEnded: (fact) =>
      inTurn(() => closeSession(parts, fact.message.session, SessionClosed_Reason.REASON_DONE, fact.trace)),
  };
}

async function takeCompleted(parts: FactInputParts, fact: StoredFact<'turnCompleted'>): Promise<void> {
  const { index } = parts;
  const { message, sequence, timeMs } = fact;
  const { turn, tenant, user, policy, answerKey } = message;
  const known = (await index.turn(turn))?.session ?? '';
  const session = known === '' ? message.provisionalSession : known;
  await index.putTurn(turn, { tenant, user, policy, session, completedSequence: sequence });
  if (session !== '') {
    await index.touchSession({ session, tenant, user, policy, lastMs: timeMs });
    await index.addSessionAnswer(session, turn, sequence);
  }
  if (answerKey !== '') await index.addAnswer(message, answerKey, turn, sequence);
  for (const awaited of [answerKey, answerInSession(session)]) await linkWaiting(parts, message, awaited);
}

async function linkWaiting(parts: FactInputParts, owner: Owner, awaited: string): Promise<void> {
  const { index, log } = parts;
  for (const waiting of await index.waiting(owner, awaited)) {
    const opened = await log.opened(owner, waiting);
    if (opened !== undefined) await linkTurn(parts, opened);
    if ((await index.turn(waiting))?.parent !== '') await index.stopWaiting(owner, awaited, waiting);
  }
}
