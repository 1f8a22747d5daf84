// Whether a policy learns now. In: keys `<policy>.learning`, which operators set, and `<policy>.storage`, which tells that the data folder
// is full, of bucket `settings`. Out: the switches at the desk.
// Either keeps batches from closing; a batch that is closed is still trained, since the ledger has promised it.
import { kvBucket, type Broker, type KvCodec } from '@backtalk/kit';

import { trainerErrors } from '../errors.js';
import type { TrainerEvents } from '../events.js';
import type { Desk } from './desk.js';

/** Resolves when the present position of the switches is known: nothing is closed before. */
export async function watchLearning(
  broker: Broker,
  desk: Desk,
  events: TrainerEvents,
  signal: AbortSignal,
): Promise<void> {
  const { policy } = desk;
  await watchSwitch(broker, { key: `${policy}.learning`, field: 'paused', signal }, (paused) => {
    if (paused === desk.paused) return;
    desk.paused = paused;
    events.learningSwitched(policy, paused);
    desk.bell.ring();
  });
  await watchSwitch(broker, { key: `${policy}.storage`, field: 'full', signal }, (full) => {
    if (full === desk.storageFull) return;
    desk.storageFull = full;
    events.storageFilled(policy, full);
    desk.bell.ring();
  });
}

interface Switch {
  readonly key: string;
  readonly field: string;
  readonly signal: AbortSignal;
}

/** A key that is not there, or was deleted, is off. */
async function watchSwitch(
  broker: Broker,
  { key, field, signal }: Switch,
  onSwitch: (on: boolean) => void,
): Promise<void> {
  const codec: KvCodec<boolean> = {
    toJSON: (value) => ({ [field]: value }),
    fromJSON: (json) => {
      const value: unknown = isRecord(json) ? (json[field] ?? false) : false;
      if (typeof value !== 'boolean') throw trainerErrors.settingUnreadable({ key });
      return value;
    },
  };
  const settings = kvBucket(broker, 'settings', codec);
  await settings.watch(key, (change) => onSwitch(change.kind === 'put' && change.value), signal);
}

function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null;
}
