import { until } from '@backtalk/kit/testing';
import { WeightsStaged_Stage } from '@backtalk/proto/facts';
import type { TrainRequest } from '@backtalk/proto/training';
import { WeightsManifest } from '@backtalk/proto/weights';
import { afterEach, describe, expect, it } from 'vitest';

import type { FakeTrainingWorkerOptions } from './testing/fake-training-worker.js';
import { TrainerRig } from './testing/trainer-rig.js';

const environment = { BACKTALK_RECIPE_SET: 'effective=2,effectiveMin=2,settleAtTurns=1' };
let rig: TrainerRig;

afterEach(async () => {
  await rig.stop();
});

async function withVersions(count: number, worker: FakeTrainingWorkerOptions = {}): Promise<void> {
  rig = await TrainerRig.start({ environment, worker });
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

  it('a version that was made is made again, whatever guards of today say of its step', async () => {
    const measurements = ({ call }: TrainRequest): Record<string, number> =>
      call.startsWith('rebuild-') ? { gradient_norm: 0 } : {};
    await withVersions(1, { measurements });
    await rig.rebuild('backtalk-v1', 'one');
    expect(await rig.untilRebuilt('one')).toMatchObject({ state: 'equal' });
  });

  it('other bytes are said to be other bytes, file by file', async () => {
    await withVersions(1);
    rig.worker.salt = 'another processor';
    await rig.rebuild('backtalk-v1', 'one');
    const detail = 'backtalk-v1: adapter_model.safetensors, adapter_config.json, optimizer.safetensors';
    expect(await rig.untilRebuilt('one')).toMatchObject({ state: 'different', detail });
  });

  it('another model that teaches now is said to be one', async () => {
    await withVersions(1);
    rig.worker.teacherDigest = 'another';
    await rig.rebuild('backtalk-v1', 'one');
    const detail = 'backtalk-v1: the model that teaches';
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

describe('a replay', () => {
  it('versions that are replayed with the recipe that they had come out the same, byte for byte, and no version is made', async () => {
    await withVersions(3);
    await rig.replay('backtalk-v2', 'backtalk-v3', 'one');
    const { replayed, ...progress } = await rig.untilRebuilt('one');
    expect(progress).toMatchObject({ state: 'equal', done: 2, of: 2, detail: '' });
    expect(replayed).toMatchObject([
      { version: 'backtalk-v2', differing: [], measurements: { loss_opd: 1 } },
      { version: 'backtalk-v3', differing: [] },
    ]);
    expect(await rig.versions()).toHaveLength(3);
    for (const version of ['backtalk-v2', 'backtalk-v3']) expect(await rig.filesThere(version)).toBe(true);
  });

  it('another recipe makes each version upon what the one before comes out as then', async () => {
    await withVersions(3);
    const before = rig.worker.steps.length;
    await rig.replay('backtalk-v1', 'backtalk-v3', 'one', 'learningRate=5e-4');
    const { state, detail, replayed } = await rig.untilRebuilt('one');
    expect({ state, of: replayed.length }).toEqual({ state: 'different', of: 3 });
    expect(detail).toMatch(/^backtalk-v1: /);
    const requests = rig.worker.steps.slice(before).map(({ request }) => request);
    expect(requests.map(({ config }) => config?.learningRate)).toEqual([5e-4, 5e-4, 5e-4]);
    const [first, second] = await Promise.all(['backtalk-v1', 'backtalk-v2'].map((version) => rig.digestsOf(version)));
    expect(requests[0]?.parentAdapter).toEqual([]);
    for (const { digest } of requests[1]?.parentAdapter ?? []) expect(first).not.toContain(digest);
    for (const { digest } of requests[2]?.parentAdapter ?? []) expect(second).not.toContain(digest);
    expect(requests[2]?.parentAdapter).not.toEqual(requests[1]?.parentAdapter);
  });

  it('what the last version came out as is kept until the next replay, and what serves for good', async () => {
    await withVersions(2);
    const before = rig.worker.steps.length;
    await rig.replay('backtalk-v1', 'backtalk-v2', 'one', 'learningRate=5e-4');
    const last = WeightsManifest.decode(await rig.blobs.get((await rig.untilRebuilt('one')).manifest));
    const there = async (files: readonly { digest: string }[]) =>
      Promise.all(files.map(({ digest }) => rig.blobs.has(digest)));
    expect(await there(last.adapter)).toEqual([true, true]);
    const between = rig.worker.steps.at(before + 1)?.request.parentAdapter ?? [];
    expect(await there(between.filter(({ name }) => name.endsWith('.safetensors')))).toEqual([false]);
    await rig.replay('backtalk-v2', 'backtalk-v2', 'two');
    expect(await rig.untilRebuilt('two')).toMatchObject({ state: 'equal' });
    const calls = rig.worker.steps.map(({ request }) => request.call);
    expect(new Set(calls).size).toBe(calls.length);
    expect(await there(last.adapter.filter(({ name }) => name.endsWith('.safetensors')))).toEqual([false]);
    for (const version of ['backtalk-v1', 'backtalk-v2']) expect(await rig.filesThere(version)).toBe(true);
  });

  it('files of a version stay that a replay comes out as, whatever that is called', async () => {
    await withVersions(2);
    rig.worker.unmoved = true;
    await rig.replay('backtalk-v2', 'backtalk-v2', 'one');
    expect(await rig.untilRebuilt('one')).toMatchObject({ state: 'different' });
    rig.worker.unmoved = false;
    await rig.replay('backtalk-v1', 'backtalk-v2', 'two');
    expect(await rig.untilRebuilt('two')).toMatchObject({ state: 'equal' });
    for (const version of ['backtalk-v1', 'backtalk-v2']) expect(await rig.filesThere(version)).toBe(true);
  });

  it('a step of which no version would come ends a replay, and the guard is named', async () => {
    const measurements = ({ config }: TrainRequest): Record<string, number> =>
      config?.learningRate === 5e-4 ? { gradient_norm: 0 } : {};
    await withVersions(2, { measurements });
    await rig.replay('backtalk-v1', 'backtalk-v2', 'one', 'learningRate=5e-4');
    const { state, detail } = await rig.untilRebuilt('one');
    expect(state).toBe('failed');
    expect(detail).toMatch(/backtalk-v1.*nothing_trained/);
  });

  it('a wish that cannot begin says nothing of the one before it', async () => {
    await withVersions(2);
    let goOn: () => void = () => undefined;
    const held = new Promise<void>((resolve) => (goOn = resolve));
    rig.worker.plot = () => held;
    await rig.replay('backtalk-v1', 'backtalk-v2', 'one', 'learningRate=5e-4');
    await until(() => rig.worker.steps.length === 3, { what: 'The first step of the replay' });
    await rig.replay('backtalk-v2', 'backtalk-v1', 'two');
    goOn();
    expect(await rig.untilRebuilt('two')).toMatchObject({ state: 'failed', replayed: [], manifest: '', of: 0 });
  });

  it.each([
    ['a name that recipes lack', 'learningrat=1', /learningrat/],
    ['what decides what a batch holds', 'effective=3', /effective has no part in a step/],
    ['a rank that its parent does not have', 'loraRank=4', /loraRank 4 .* backtalk-v1 has 8/],
  ])('a replay with %s is refused in words that name it', async (_what, recipe, expected) => {
    await withVersions(2);
    await rig.replay('backtalk-v2', 'backtalk-v2', 'one', recipe);
    const { state, detail } = await rig.untilRebuilt('one');
    expect(state).toBe('failed');
    expect(detail).toMatch(expected);
  });

  it('two versions of which one was not made upon the other are refused, and a first one whose parent is swept', async () => {
    await withVersions(2);
    await rig.replay('backtalk-v2', 'backtalk-v1', 'one');
    expect((await rig.untilRebuilt('one')).detail).toContain('backtalk-v1 was not made upon backtalk-v2');
    await rig.loseFilesOf('backtalk-v1');
    await rig.replay('backtalk-v2', 'backtalk-v2', 'two');
    expect((await rig.untilRebuilt('two')).detail).toContain('npx backtalk rebuild backtalk-v1');
  });
});
