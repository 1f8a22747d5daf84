// Facts of one policy as they are delivered. A judged turn is kept un-acked as a candidate until a batch takes or settles it; one that
// some batch has settled is acked. A staged version moves the line of versions, and stops a step on a parent that was just burned.
import { templateTokenIn, type Delivery, type StoredFact } from '@backtalk/kit';
import { WeightsStaged_Stage } from '@backtalk/proto/facts';

import { candidateOf } from '../domain/candidate.js';
import { isOfForgotten } from '../domain/forgotten-people.js';
import type { TrainerTools } from './trainer-tools.js';
import type { Ledger } from '../outputs/ledger.js';
import type { PolicyState } from './policy-state.js';

export function judgedTurns({ turns, recipe, events }: TrainerTools, state: PolicyState, ledger: Ledger) {
  return async function onJudged(fact: StoredFact<'turnJudged'>, delivery: Delivery): Promise<void> {
    const { message } = fact;
    const { turn } = message;
    const settledBefore = !state.pending.has(turn) && (await ledger.hasTaken(await state.ledger(), message));
    if (settledBefore) return events.judgedRead(state.policy, 'settled_before');
    const candidate = candidateOf(fact, await turns.facts(message), recipe);
    // A batch may have closed while the turn was being read, here or by another trainer.
    const { settled, forgotten } = await state.ledger();
    if (settled.has(turn)) return events.judgedRead(state.policy, 'settled_before');
    if (isOfForgotten(candidate, forgotten)) return events.judgedRead(state.policy, 'forgotten');
    state.pending.add(candidate, delivery.hold());
    events.judgedRead(state.policy, 'pending');
    if (templateTokenIn(message.hint) !== undefined) events.hintRefused(state.policy, turn);
    state.wake.notify();
  };
}

/** It is in the log for good, and batches say how far they have taken it in: the delivery itself only wakes. */
export function changedLessons(state: PolicyState) {
  return async function onChanged({ sequence }: StoredFact<'lessonChanged'>): Promise<void> {
    const ledger = await state.ledger();
    ledger.changedAt = Math.max(ledger.changedAt, sequence);
    state.wake.notify();
  };
}

export function stagedVersions({ events }: TrainerTools, state: PolicyState) {
  return async function onStaged({ message, sequence, timeMs }: StoredFact<'weightsStaged'>): Promise<void> {
    const { line } = await state.ledger();
    line.staged(message, sequence);
    if (state.step !== undefined && line.isTainted(state.step.parent)) state.step.stop.abort();
    const { closed } = state;
    if (message.stage === WeightsStaged_Stage.STAGE_STABLE && closed?.version === message.version) {
      for (const saidAtMs of closed.saidAtMs) events.lessonServed(state.policy, (timeMs - saidAtMs) / 1_000);
      state.closed = undefined;
    }
    state.wake.notify();
  };
}
