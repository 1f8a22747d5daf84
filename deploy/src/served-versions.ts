// Says in the terminal which version answers, whenever that changes. In: the routes of the gateway. Out: a line for each change.
import { asBacktalkError, isBaseVersion, kvBucket, type Broker } from '@backtalk/kit';
import { Routes } from '@backtalk/proto/weights';
import type { Terminal } from './terminal.js';

/** What answers when this begins is not said. It ends with the returned function. */
export async function tellServed(connect: () => Promise<Broker>, terminal: Terminal): Promise<() => Promise<void>> {
  let broker: Broker | undefined;
  try {
    broker = await connect();
    await watchRoutes(broker, terminal);
  } catch (thrown) {
    // The machine serves and learns all the same.
    terminal.warn(`which version answers is not said here: ${asBacktalkError(thrown).message}`);
  }
  return async () => broker?.close();
}

async function watchRoutes(broker: Broker, terminal: Terminal): Promise<void> {
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
