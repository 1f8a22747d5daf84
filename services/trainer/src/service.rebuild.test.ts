import { WeightsStaged_Stage } from '@backtalk/proto/facts';
import { afterEach, describe, expect, it } from 'vitest';

import { TrainerRig } from './testing/trainer-rig.js';

const environment = { BACKTALK_RECIPE_SET: 'effective=2,effectiveMin=1,waitMs=100,settleAtTurns=1' };
let rig: TrainerRig;

afterEach(async () => {
  await rig.stop();
});

async function withVersions(count: number): Promise<void> {
  rig = await TrainerRig.start({ environment });
  await rig.startTrainer();
  for (let made = 1; made <= count; made += 1) {
    await rig.correct(2, { name: `v${String(made)}-`, hint: `Use ${String(made)} tables.` });
    await rig.untilVersions(made);
    await rig.stage(`backtalk-v${String(made)}`, WeightsStaged_Stage.STAGE_STABLE);
  }
}

describe('a version that is made again', () => {
  it('a version whose parents’ files were swept is made again from the log, and they with it, byte for byte', async () => {
    await withVersions(3);
    const lost = [...(await rig.loseFilesOf('backtalk-v1')), ...(await rig.loseFilesOf('backtalk-v2'))];
    await rig.rebuild('backtalk-v3', 'one');
    expect(await rig.untilRebuilt('one')).toMatchObject({ state: 'equal', done: 3, of: 3, detail: '' });
    for (const digest of lost) expect(await rig.blobs.has(digest)).toBe(true);
    expect(await rig.versions()).toHaveLength(3);
  });

  it('a version whose parent has its files takes one step', async () => {
    await withVersions(2);
    await rig.rebuild('backtalk-v2', 'one');
    expect(await rig.untilRebuilt('one')).toMatchObject({ state: 'equal', done: 1, of: 1 });
  });

  it('other bytes are said to be other bytes, file by file', async () => {
    await withVersions(1);
    rig.worker.salt = 'another processor';
    await rig.rebuild('backtalk-v1', 'one');
    const detail = 'backtalk-v1: adapter_model.safetensors, adapter_config.json, optimizer.safetensors';
    expect(await rig.untilRebuilt('one')).toMatchObject({ state: 'different', detail });
  });

  it('a version whose turns are gone is not made again, and they are named', async () => {
    await withVersions(1);
    await rig.trimTurns();
    await rig.rebuild('backtalk-v1', 'one');
    const { state, detail } = await rig.untilRebuilt('one');
    expect(state).toBe('failed');
    expect(detail).toMatch(/v1-0, v1-1/);
  });

  it('a version is given up whose worker stays away, and learning goes on once it is back', async () => {
    await withVersions(1);
    await rig.worker.kill();
    await rig.rebuild('backtalk-v1', 'one');
    expect(await rig.untilRebuilt('one')).toMatchObject({ state: 'failed' });
    await rig.worker.start();
    await rig.correct(2, { name: 'more', hint: 'Use colours.' });
    await rig.untilVersions(2);
  });

  it('a version that never was is refused by name, and learning goes on', async () => {
    await withVersions(1);
    await rig.rebuild('backtalk-v9', 'one');
    expect((await rig.untilRebuilt('one')).detail).toContain('backtalk-v9');
    await rig.correct(2, { name: 'more', hint: 'Use colours.' });
    await rig.untilVersions(2);
  });
});
