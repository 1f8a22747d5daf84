// Judged turns, as they are delivered: kept un-acked until a batch takes or settles the turn.
// In: turnJudged facts of one policy. Out: candidates at the desk. A turn that some batch has settled is acked and forgotten.
import type { Delivery, FactPosition, StoredFact } from '@backtalk/kit';
import type { TurnJudged } from '@backtalk/proto/facts';

import { candidateOf } from '../domain/candidate.js';
import type { TrainerEvents } from '../events.js';
import type { Ledger } from '../outputs/ledger.js';
import type { TurnLog } from '../outputs/turn-log.js';
import type { Desk } from './desk.js';

export interface JudgedParts {
  readonly desk: Desk;
  readonly ledger: Ledger;
  readonly turns: TurnLog;
  readonly events: TrainerEvents;
  readonly position: () => Promise<FactPosition>;
}

export function judgedTurns({ desk, ledger, turns, events, position }: JudgedParts) {
  // One sample per turn id, ever. A later revision of a turn that was settled long ago is known by the ack floor: every message at or
  // below it is settled, the turn's first revision among them.
  async function settledBefore({ turn, revision }: TurnJudged): Promise<boolean> {
    const books = await desk.openBooks();
    if (books.settled.has(turn)) return true;
    if (revision === 0 || desk.pending.has(turn)) return false;
    const first = await ledger.firstJudged(turn);
    return first !== undefined && first <= (await position()).settledSequence;
  }

  return async function onJudged(fact: StoredFact<'turnJudged'>, delivery: Delivery): Promise<void> {
    const { message, sequence, timeMs, trace } = fact;
    if (await settledBefore(message)) {
      events.judgedRead(desk.policy, 'settled_before');
      return;
    }
    const candidate = candidateOf(message, await turns.facts(message), sequence, timeMs, trace);
    // A batch may have closed while the turn was being read, here or by another trainer.
    if ((await desk.openBooks()).settled.has(message.turn)) {
      events.judgedRead(desk.policy, 'settled_before');
      return;
    }
    desk.pending.add(candidate, delivery.hold());
    events.judgedRead(desk.policy, 'pending');
    desk.bell.ring();
  };
}
