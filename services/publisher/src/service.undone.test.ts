// What the log says of versions that are burned since something that they were taught is undone: the trainer takes their other steps once more.
import { WeightsStaged_Stage } from '@backtalk/proto/facts';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { SwapRig } from './testing/swap-rig.js';

let rig: SwapRig;

beforeEach(async () => {
  rig = await SwapRig.start();
  await rig.startLoader();
});

afterEach(() => rig.stop());

it('the log says of each version whether it is burned since a lesson is undone, and not of those that were burned before', async () => {
  const publisher = await rig.startPublisher();
  await rig.release(1, 2, 3, 4);
  await rig.rollBack(publisher);
  await rig.undo(publisher, 'backtalk-v1');
  const burned = (await rig.staged()).filter(({ stage }) => stage === WeightsStaged_Stage.STAGE_BURNED);
  expect(burned.map(({ version, undone }) => [version, undone])).toEqual([
    ['backtalk-v4', false],
    ['backtalk-v2', true],
    ['backtalk-v3', true],
  ]);
});

it('the log says the same of what is made upon one of them, and of each that it names once more', async () => {
  const publisher = await rig.startPublisher();
  await rig.release(1, 2);
  await rig.undo(publisher, 'backtalk-v0');
  await rig.train(3, { parent: 'backtalk-v2' });
  await rig.burned(3);
  await rig.rollBackTo(publisher, 'backtalk-v0', ['backtalk-v1', 'backtalk-v3']);
  const burned = (await rig.staged()).filter(({ stage }) => stage === WeightsStaged_Stage.STAGE_BURNED);
  expect(burned.map(({ version, undone }) => [version.slice(-2), undone])).toEqual([
    ['v1', true],
    ['v2', true],
    ['v3', true],
    ['v1', true],
    ['v3', true],
  ]);
});

it('a version that is made upon one that was merely rolled back is not said to be undone', async () => {
  const publisher = await rig.startPublisher();
  await rig.release(1);
  await rig.rollBack(publisher);
  await rig.train(2, { parent: 'backtalk-v1' });
  expect(await rig.burned(2)).toMatchObject({ undone: false });
});
