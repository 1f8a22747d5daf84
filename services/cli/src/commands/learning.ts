// `pause` and `resume`: learning stops and goes on; chat and judging are not touched. The switch survives restarts. And why learning rests
// although no operator said so.
import { burnedInARow, FactReader, isHeld, jsonCodec, kvBucket, versionNumber, type Broker } from '@backtalk/kit';
import { WeightsStaged_Stage, type WeightsTrained } from '@backtalk/proto/facts';
import { z } from 'zod';
import { withBroker, type Connection } from '../connection.js';
import type { CommandContext } from '../shell.js';

const codec = jsonCodec(
  z.object({
    paused: z.boolean(),
    /** Number of the version that was the newest when `resume` was said. */
    resumedAfter: z.number().optional(),
  }),
);

export async function isLearningPaused(broker: Broker, policy: string): Promise<boolean> {
  return (await kvBucket(broker, 'settings', codec).get(`${policy}.learning`))?.value.paused ?? false;
}

const storageCodec = jsonCodec(z.object({ full: z.boolean() }));

/** The data folder has reached its cap: learning rests by itself until there is room. */
export async function isStorageFull(broker: Broker, policy: string): Promise<boolean> {
  return (await kvBucket(broker, 'settings', storageCodec).get(`${policy}.storage`))?.value.full ?? false;
}

/** Why training rests after versions that were burned in a row; empty where it does not. */
export async function heldBecause(broker: Broker, policy: string): Promise<string> {
  const reader = new FactReader(broker);
  const trained: { readonly message: WeightsTrained; readonly sequence: number }[] = [];
  const burned = new Map<string, string>();
  const served = new Set<string>();
  const filter = { weightsTrained: { policy }, weightsStaged: { policy } };
  for await (const fact of reader.read(['weightsTrained', 'weightsStaged'], { filter })) {
    if (fact.name === 'weightsTrained') trained.push(fact);
    else if (fact.message.stage === WeightsStaged_Stage.STAGE_STABLE) served.add(fact.message.version);
    else if (fact.message.stage === WeightsStaged_Stage.STAGE_BURNED)
      burned.set(fact.message.version, fact.message.why);
  }
  const fates = trained.map(({ message: { version, parent, batch } }) => {
    return { version, parent, batch, isBurned: burned.has(version), hasServed: served.has(version) };
  });
  const resumedAfter = (await kvBucket(broker, 'settings', codec).get(`${policy}.learning`))?.value.resumedAfter ?? 0;
  const row = burnedInARow(policy, fates, { resumedAfter, lessonsChangedAt: 0 });
  const first = trained.find(({ message }) => message.version === row[0]);
  if (first === undefined || !isHeld(row)) return '';
  let lessonsChangedAt = 0;
  const closed = { filter: { batchClosed: { policy } }, from: first.sequence };
  for await (const { message } of reader.read(['batchClosed'], closed))
    if (message.why === 'lessons') lessonsChangedAt = message.number;
  const left = burnedInARow(policy, fates, { resumedAfter, lessonsChangedAt });
  const why = burned.get(left.at(-1) ?? '') ?? '';
  return isHeld(left) ? `${left.join(', ')} were burned in a row, the last one for ${why}` : '';
}

/** To go on says also that versions burned until now hold training no longer. */
export async function switchLearning(connection: Connection, paused: boolean): Promise<void> {
  const { policy } = connection;
  await withBroker(connection, async (broker) => {
    const bucket = kvBucket(broker, 'settings', codec);
    const before = (await bucket.get(`${policy}.learning`))?.value.resumedAfter ?? 0;
    const newest = paused ? undefined : await new FactReader(broker).last('weightsTrained', { policy });
    const resumedAfter = versionNumber(policy, newest?.message.version ?? '') ?? before;
    await bucket.put(`${policy}.learning`, { paused, resumedAfter });
  });
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
