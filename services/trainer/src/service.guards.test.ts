// Guards that act on a step, through a real trainer: what they do to the batch, the log, the metrics and what comes after.
import { afterEach, describe, expect, it } from 'vitest';

import { TrainerRig, type RigOptions } from './testing/trainer-rig.js';

const environment = { BACKTALK_RECIPE_SET: 'effective=2,effectiveMin=1,waitMs=600000' };
let rig: TrainerRig;

/** The steps of the first version are as given; later ones are sound. */
async function rigWith(worker: RigOptions['worker']): Promise<TrainerRig> {
  rig = await TrainerRig.start({ environment, worker: worker ?? {} });
  return rig;
}

afterEach(() => rig.stop());

describe('a step that a guard skips', () => {
  it.each([
    ['too_long', { dropped: (turn: string) => (turn.startsWith('bad') ? 'too_long' : '') }],
    ['nothing_trained', onlyFirst({ gradient_norm: 0 })],
    ['kl_step', onlyFirst({ kl_step: 1.4 })],
  ])('%s: no version comes of it, its samples are settled by name, and learning goes on', async (guard, worker) => {
    await rigWith(worker);
    const trainer = await rig.startTrainer();
    await rig.correct(2, { name: 'bad' });
    const [, skipped] = await rig.untilBatches(2);
    expect(skipped).toMatchObject({ why: 'step_skipped', version: '' });
    expect(skipped?.detail).toMatch(new RegExp(`^${guard}: `));
    expect(skipped?.settled.map(({ reason }) => reason)).toEqual(['step_skipped', 'step_skipped']);
    expect(rig.worker.finished).toEqual(['backtalk-1']);
    await rig.correct(2, { name: 'good' });
    expect(await rig.untilVersions(1)).toMatchObject([{ version: 'backtalk-v2', parent: 'backtalk-v0', batch: 3 }]);
    expect(await rig.metric(trainer, new RegExp(`guards_acted_total\\{.*guard="${guard}",action="skip"`))).toBe(1);
    expect(await rig.metric(trainer, /batches_abandoned_total\{.*reason="step_skipped"/)).toBe(1);
  });

  it('template_mismatch: teachers that most samples lost make no version', async () => {
    await rigWith({});
    await rig.startTrainer();
    for (const turn of ['a', 'b']) await rig.say({ turn, hint: 'Be brief.', promptIds: [5, 6, 7] });
    const [, skipped] = await rig.untilBatches(2);
    expect(skipped?.why).toBe('step_skipped');
    expect(skipped?.detail).toMatch(/^template_mismatch: 1\.00/);
    expect(await rig.versions()).toEqual([]);
  });
});

it('a step of which the worker left the sampled terms out makes a version, and the guard is counted', async () => {
  await rigWith({ measurements: () => ({ gradient_norm: 1, ess: 0.1, guard_ess: 1 }) });
  const trainer = await rig.startTrainer();
  await rig.correct(2);
  await rig.untilVersions(1);
  expect(await rig.metric(trainer, /guards_acted_total\{.*guard="ess",action="mask"/)).toBe(1);
});

function onlyFirst(measurements: Readonly<Record<string, number>>): NonNullable<RigOptions['worker']> {
  return { measurements: ({ version }) => (version === 'backtalk-v1' ? measurements : {}) };
}
