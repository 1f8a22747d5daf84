// Whether a policy learns now, from bucket `settings`: key `<policy>.learning` is set by operators, `<policy>.storage` where the data
// folder is full. Either keeps batches from closing; a closed batch is still trained, since the ledger has promised it.
import { isJsonObject, kvBucket, type Broker, type KvCodec } from '@backtalk/kit';

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
  await watchSwitch(broker, `${policy}.learning`, 'paused', signal, (paused) => {
    if (paused === state.paused) return;
    state.paused = paused;
    events.learningSwitched(policy, paused);
    state.wake.notify();
  });
  await watchSwitch(broker, `${policy}.storage`, 'full', signal, (full) => {
    if (full === state.storageFull) return;
    state.storageFull = full;
    events.storageFilled(policy, full);
    state.wake.notify();
  });
}

/** A key that is not there, or was deleted, is off. */
async function watchSwitch(
  broker: Broker,
  key: string,
  field: string,
  signal: AbortSignal,
  onSwitch: (on: boolean) => void,
): Promise<void> {
  const codec: KvCodec<boolean> = {
    toJSON: (value) => ({ [field]: value }),
    fromJSON: (json) => {
      const value: unknown = isJsonObject(json) ? (json[field] ?? false) : false;
      if (typeof value !== 'boolean') throw trainerErrors.settingUnreadable({ key });
      return value;
    },
  };
  const settings = kvBucket(broker, 'settings', codec);
  await settings.watch(key, (change) => onSwitch(change.kind === 'put' && change.value), signal);
}
