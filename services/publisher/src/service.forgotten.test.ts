// Versions whose answers leave the log, since they learned from a person who is forgotten.
import { deleteFacts, FactReader } from '@backtalk/kit';
import { until } from '@backtalk/kit/testing';
import { WeightsStaged_Stage } from '@backtalk/proto/facts';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { SwapRig } from './testing/swap-rig.js';

let rig: SwapRig;

beforeEach(async () => {
  rig = await SwapRig.start();
  await rig.startLoader();
});

afterEach(() => rig.stop());

/** All that the log says of versions but the newest word on each. */
async function dropAllButTheNewest(versions: readonly string[]): Promise<void> {
  const newest = new Map<string, number>();
  const older: number[] = [];
  const cli = await rig.nats.connect('cli');
  for await (const { message, sequence } of new FactReader(cli).read(['weightsStaged'])) {
    if (!versions.includes(message.version)) continue;
    older.push(...[newest.get(message.version)].filter((one) => one !== undefined));
    newest.set(message.version, sequence);
  }
  expect(older.length).toBeGreaterThan(versions.length);
  await deleteFacts(cli, older, { from: 'WEIGHTS' });
}

it('a publisher that starts without what was said of forgotten versions knows what answers, and gateways follow it on', async () => {
  const gateway = await rig.startGateway();
  const first = await rig.startPublisher();
  await rig.release(1, 2, 3);
  const forgotten = ['backtalk-v2', 'backtalk-v3'];
  await rig.rollBackTo(first, 'backtalk-v1', forgotten);
  expect((await rig.story()).slice(-3)).toEqual(['v2 BURNED', 'v3 BURNED', 'v1 STABLE']);
  const { fence = 0 } = (await rig.routes()) ?? {};
  await dropAllButTheNewest(forgotten);
  await first.stop();
  await rig.startPublisher();
  await rig.train(4, { parent: 'backtalk-v1' });
  await rig.stableIs(4);
  await until(() => gateway.commits.at(-1)?.stable === 'backtalk-v4');
  expect((await rig.routes())?.previous).toBe('backtalk-v1');
  expect((await rig.routes())?.fence).toBeGreaterThan(fence);
});

it('a version that the gate burned is said to be burned once more, without what it answered, and one that answers is not', async () => {
  const publisher = await rig.startPublisher();
  await rig.release(1);
  rig.engine.settings.reply = (_messages, model) => (model === 'backtalk-v2' ? '' : undefined);
  await rig.train(2);
  await rig.burned(2);
  await rig.rollBackTo(publisher, 'backtalk-v1', ['backtalk-v1', 'backtalk-v2']);
  const said = (await rig.staged()).slice(-2);
  expect(said).toMatchObject([
    { version: 'backtalk-v2', stage: WeightsStaged_Stage.STAGE_BURNED, compared: [], why: 'worse answers' },
    { version: 'backtalk-v1', stage: WeightsStaged_Stage.STAGE_STABLE, compared: [] },
  ]);
  expect((await rig.routes())?.stable).toBe('backtalk-v1');
});
