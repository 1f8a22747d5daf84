// `pause` and `resume`: learning stops and goes on; chat and judging are not touched. The switch survives restarts. And why learning rests
// although no operator said so.
import {
  burnedInARow,
  FactReader,
  givenUpInARow,
  isBacktalkError,
  isHeld,
  kvBucket,
  learningSwitch,
  storageRoom,
  versionNumber,
  type Broker,
  type KvEntry,
  type LearningSwitch,
} from '@backtalk/kit';
import { WeightsStaged_Stage, type BatchClosed, type WeightsTrained } from '@backtalk/proto/facts';
import { Routes } from '@backtalk/proto/weights';
import { withBroker, withBrokerAlone, type Connection } from '../connection.js';
import { cliErrors } from '../errors.js';
import type { CommandContext } from '../shell.js';

type FoundSwitch = KvEntry<LearningSwitch> | undefined;

export async function isLearningPaused(broker: Broker, policy: string): Promise<boolean> {
  return (await learningSwitch(broker, policy).get())?.value.paused ?? false;
}

/** The data folder has reached its cap: learning rests by itself until there is room. */
export async function isStorageFull(broker: Broker, policy: string): Promise<boolean> {
  return (await storageRoom(broker, policy).get())?.value.full ?? false;
}

/** Why training rests after versions that were burned in a row, or batches that were given up in a row; empty where it does not. */
export async function heldBecause(broker: Broker, policy: string): Promise<string> {
  const reader = new FactReader(broker);
  const resumed = (await learningSwitch(broker, policy).get())?.value;
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
  const givenUp = await heldForBatches(reader, policy, trained.at(-1)?.sequence ?? 0, resumed?.resumedAfterBatch ?? 0);
  if (givenUp !== '') return givenUp;
  const resumedAfter = resumed?.resumedAfter ?? 0;
  const row = burnedInARow(policy, fates, { resumedAfter, lessonsChangedAt: 0 });
  const first = trained.findIndex(({ message }) => message.version === row[0]);
  if (first < 0 || !isHeld(row)) return '';
  let lessonsChangedAt = 0;
  const repeats = new Set<number>();
  // What was said while its step waited stands before it.
  const closed = { filter: { batchClosed: { policy } }, from: trained[first - 1]?.sequence ?? 1 };
  for await (const { message } of reader.read(['batchClosed'], closed)) {
    if (message.why === 'lessons') lessonsChangedAt = message.number;
    if (message.repeats > 0) repeats.add(message.number);
  }
  const known = fates.map((fate) => ({ ...fate, isRepeat: repeats.has(fate.batch) }));
  const left = burnedInARow(policy, known, { resumedAfter, lessonsChangedAt });
  const why = burned.get(left.at(-1) ?? '') ?? '';
  return isHeld(left) ? `${left.join(', ')} were burned in a row, the last one for ${why}` : '';
}

async function heldForBatches(
  reader: FactReader,
  policy: string,
  newestVersionAt: number,
  resumedAfterBatch: number,
): Promise<string> {
  let row: BatchClosed[] = [];
  const since = { filter: { batchClosed: { policy } }, from: newestVersionAt + 1 };
  for await (const { message } of reader.read(['batchClosed'], since))
    row = givenUpInARow([...row, message], resumedAfterBatch);
  const last = row.at(-1);
  if (last === undefined || !isHeld(row)) return '';
  const why = [last.why, last.detail].filter((word) => word !== '').join(': ');
  return `${row.length} batches were given up in a row, the last one for ${why}`;
}

/**
 * Changes the switch for a program, which an operator goes before.
 *
 * @param change is given what is there; undefined leaves it
 * @returns revision of what was written; undefined where nothing was, or another writer was faster
 */
export async function switchLearning(
  connection: Pick<Connection, 'policy' | 'natsUrl' | 'natsUser' | 'natsPassword' | 'wire'>,
  change: (found: FoundSwitch) => LearningSwitch | undefined,
): Promise<number | undefined> {
  return withBrokerAlone(connection, async (broker) => {
    const setting = learningSwitch(broker, connection.policy);
    const found = await setting.get();
    const wanted = change(found);
    if (wanted === undefined) return undefined;
    try {
      return await (found === undefined ? setting.create(wanted) : setting.update(wanted, found.revision));
    } catch (error) {
      if (isBacktalkError(error, 'kv_conflict')) return undefined;
      throw error;
    }
  });
}

/** A cluster's command may not be told which policies there are: then what is served and what was learned says so. */
async function assertKnown(broker: Broker, policy: string): Promise<void> {
  const served: string[] = [];
  for await (const { key } of kvBucket(broker, 'routes', Routes).entries()) served.push(key);
  if (served.length === 0 || served.includes(policy)) return;
  if ((await new FactReader(broker).last('batchClosed', { policy })) !== undefined) return;
  throw cliErrors.badArgument({ name: '--policy', value: policy, wanted: `one of ${served.toSorted().join(', ')}` });
}

/** To go on says also that what was burned or given up until now holds training no longer. */
async function sayLearning(connection: Connection, paused: boolean): Promise<void> {
  const { policy } = connection;
  await withBroker(connection, async (broker) => {
    await assertKnown(broker, policy);
    const setting = learningSwitch(broker, policy);
    const before = (await setting.get())?.value;
    const reader = new FactReader(broker);
    const newest = paused ? undefined : await reader.last('weightsTrained', { policy });
    const batch = paused ? undefined : await reader.last('batchClosed', { policy });
    const resumedAfter = versionNumber(policy, newest?.message.version ?? '') ?? before?.resumedAfter ?? 0;
    const resumedAfterBatch = batch?.message.number ?? before?.resumedAfterBatch ?? 0;
    await setting.put({ paused, resumedAfter, resumedAfterBatch });
  });
}

export async function setLearning({ connection, output }: CommandContext, paused: boolean): Promise<void> {
  const { policy } = connection;
  await sayLearning(connection, paused);
  output.value({ policy, paused });
  output.line(
    paused
      ? `${policy} does not learn until: npx backtalk resume --policy ${policy}. Turns go on being recorded and judged.`
      : `${policy} learns again.`,
  );
}
