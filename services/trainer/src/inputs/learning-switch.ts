// Whether a policy learns now. In: key `<policy>.learning` of bucket `settings`. Out: the switch at the desk.
// Pausing keeps batches from closing; a batch that is closed is still trained, since the ledger has promised it.
import { kvBucket, type Broker, type KvCodec } from '@backtalk/kit';

import { trainerErrors } from '../errors.js';
import type { TrainerEvents } from '../events.js';
import type { Desk } from './desk.js';

export interface LearningSwitch {
  readonly paused: boolean;
}

const codec: KvCodec<LearningSwitch> = {
  toJSON: (value) => value,
  fromJSON: (json) => {
    const paused = typeof json === 'object' && json !== null && 'paused' in json ? json.paused : false;
    if (typeof paused !== 'boolean') throw trainerErrors.settingUnreadable({ key: 'learning' });
    return { paused };
  },
};

// Resolves when the present position of the switch is known: nothing is closed before.
export async function watchLearning(
  broker: Broker,
  desk: Desk,
  events: TrainerEvents,
  signal: AbortSignal,
): Promise<void> {
  const settings = kvBucket(broker, 'settings', codec);
  await settings.watch(
    `${desk.policy}.learning`,
    (change) => {
      const paused = change.kind === 'put' && change.value.paused;
      if (paused === desk.paused) return;
      desk.paused = paused;
      events.learningSwitched(desk.policy, paused);
      desk.bell.ring();
    },
    signal,
  );
}
