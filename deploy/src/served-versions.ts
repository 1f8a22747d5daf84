// Says in the terminal which version answers, whenever that changes. In: the routes of the gateway. Out: a line for each change.
import { isBaseVersion, kvBucket, type Broker } from '@backtalk/kit';
import { Routes } from '@backtalk/proto/weights';
import type { Terminal } from './terminal.js';

/** What answers when this begins is not said. It ends with the connection. */
export async function tellServed(broker: Broker, terminal: Terminal): Promise<void> {
  const answering = new Map<string, string>();
  let isBegun = false;
  await kvBucket(broker, 'routes', Routes).watch('>', (change) => {
    if (change.kind !== 'put') return;
    const { policy, stable } = change.value;
    const before = answering.get(policy);
    answering.set(policy, stable);
    // A policy that has just begun is answered for by its base.
    const isNew = before === undefined && isBaseVersion(stable);
    if (isBegun && stable !== before && !isNew) terminal.step(`${stable} answers: npx backtalk versions ${stable}`);
  });
  isBegun = true;
}
