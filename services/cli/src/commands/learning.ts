// `pause` and `resume`: learning stops and goes on; chat and judging are not touched. The switch survives restarts.
import { jsonCodec, kvBucket, type Broker } from '@backtalk/kit';
import { z } from 'zod';
import { withBroker, type Connection } from '../connection.js';
import type { CommandContext } from '../shell.js';

const codec = jsonCodec(z.object({ paused: z.boolean() }));

export async function isLearningPaused(broker: Broker, policy: string): Promise<boolean> {
  return (await kvBucket(broker, 'settings', codec).get(`${policy}.learning`))?.value.paused ?? false;
}

const storageCodec = jsonCodec(z.object({ full: z.boolean() }));

/** The data folder has reached its cap: learning rests by itself until there is room. */
export async function isStorageFull(broker: Broker, policy: string): Promise<boolean> {
  return (await kvBucket(broker, 'settings', storageCodec).get(`${policy}.storage`))?.value.full ?? false;
}

export async function switchLearning(connection: Connection, paused: boolean): Promise<void> {
  await withBroker(connection, (broker) =>
    kvBucket(broker, 'settings', codec).put(`${connection.policy}.learning`, { paused }),
  );
}

export async function setLearning({ connection, output }: CommandContext, paused: boolean): Promise<void> {
  const { policy } = connection;
  await switchLearning(connection, paused);
  output.value({ policy, paused });
  output.line(
    paused
      ? `${policy} does not learn until: npx backtalk resume. Turns go on being recorded and judged.`
      : `${policy} learns again.`,
  );
}
