// Whether a policy learns now, from bucket `settings`: key `<policy>.learning` is set by operators and names the version and the batch from which on
// burned ones and given-up ones count, `<policy>.storage` where the data
// folder is full. Either keeps batches from closing; a closed batch is still trained, since the ledger has promised it, unless key
// `<policy>.abandon` names it: then an operator has given it up. `<policy>.rebuild` names versions that are to be made again.
import { abandonedBatch, askedRebuild, learningSwitch, storageRoom, type Broker } from '@backtalk/kit';

import type { TrainerEvents } from '../events.js';
import type { PolicyState } from './policy-state.js';

/** Resolves when the present position of the switches is known: nothing is closed before. */
export async function watchLearning(
  broker: Broker,
  state: PolicyState,
  events: TrainerEvents,
  signal: AbortSignal,
): Promise<void> {
  const { policy } = state;
  await learningSwitch(broker, policy).watch(
    ({ paused, resumedAfter = 0, resumedAfterBatch = 0 } = { paused: false }) => {
      // Said again it counts as well: what was burned or given up until then holds training no longer.
      state.resumedAfter = Math.max(state.resumedAfter, resumedAfter);
      state.resumedAfterBatch = Math.max(state.resumedAfterBatch, resumedAfterBatch);
      state.wake.notify();
      if (paused === state.paused) return;
      state.paused = paused;
      events.learningSwitched(policy, paused);
    },
    signal,
  );
  await storageRoom(broker, policy).watch(({ full } = { full: false }) => {
    if (full === state.storageFull) return;
    state.storageFull = full;
    events.storageFilled(policy, full);
    state.wake.notify();
  }, signal);
  await abandonedBatch(broker, policy).watch((abandoned) => {
    state.abandoned = abandoned?.batch;
    if (state.step !== undefined && state.step.batch === state.abandoned) state.step.stop.abort();
    state.wake.notify();
  }, signal);
  await askedRebuild(broker, policy).watch((asked) => {
    state.asked = asked;
    state.wake.notify();
  }, signal);
}
