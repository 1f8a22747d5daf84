// Whether a policy learns now, from bucket `settings`: key `<policy>.learning` is set by operators and names the version and the batch from which on
// burned ones and given-up ones count, `<policy>.storage` where the data
// folder is full. Either keeps batches from closing; a closed batch is still trained, since the ledger has promised it, unless key
// `<policy>.abandon` names it: then an operator has given it up. `<policy>.rebuild` names versions that are to be made again.
import { kvBucket, type Broker, type KvCodec } from '@backtalk/kit';
import { z } from 'zod';

import { trainerErrors } from '../errors.js';
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
  await watchSetting<LearningSwitch>(
    broker,
    `${policy}.learning`,
    switchOf,
    signal,
    ({ paused, resumedAfter, resumedAfterBatch } = learns) => {
      // Said again it counts as well: what was burned or given up until then holds training no longer.
      state.resumedAfter = Math.max(state.resumedAfter, resumedAfter);
      state.resumedAfterBatch = Math.max(state.resumedAfterBatch, resumedAfterBatch);
      state.wake.notify();
      if (paused === state.paused) return;
      state.paused = paused;
      events.learningSwitched(policy, paused);
    },
  );
  await watchSetting(broker, `${policy}.storage`, fullOf, signal, (full = false) => {
    if (full === state.storageFull) return;
    state.storageFull = full;
    events.storageFilled(policy, full);
    state.wake.notify();
  });
  await watchSetting(broker, `${policy}.abandon`, batchOf, signal, (batch) => {
    state.abandoned = batch;
    if (state.step !== undefined && state.step.batch === batch) state.step.stop.abort();
    state.wake.notify();
  });
  await watchSetting(broker, `${policy}.rebuild`, rebuildOf, signal, (asked) => {
    state.asked = asked;
    state.wake.notify();
  });
}

const rebuildOf = z.object({
  id: z.string(),
  version: z.string(),
  from: z.string().optional(),
  recipe: z.string().default(''),
  judged: z.string().default(''),
});
const switchOf = z.object({
  paused: z.boolean().default(false),
  resumedAfter: z.number().int().default(0),
  resumedAfterBatch: z.number().int().default(0),
});
type LearningSwitch = z.infer<typeof switchOf>;
const learns: LearningSwitch = { paused: false, resumedAfter: 0, resumedAfterBatch: 0 };
const fullOf = z.object({ full: z.boolean().default(false) }).transform(({ full }) => full);
const batchOf = z.object({ batch: z.number().int() }).transform(({ batch }) => batch);

/** A key that is not there, or was deleted, has no value; one that cannot be read is passed over. */
async function watchSetting<T>(
  broker: Broker,
  key: string,
  schema: z.ZodType<T>,
  signal: AbortSignal,
  onValue: (value: T | undefined) => void,
): Promise<void> {
  const codec: KvCodec<T> = {
    toJSON: (value) => value,
    fromJSON: (json) => {
      const read = schema.safeParse(json);
      if (!read.success) throw trainerErrors.settingUnreadable({ key });
      return read.data;
    },
  };
  const settings = kvBucket(broker, 'settings', codec);
  await settings.watch(key, (change) => onValue(change.kind === 'put' ? change.value : undefined), signal);
}
