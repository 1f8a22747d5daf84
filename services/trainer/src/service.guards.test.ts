// Guards that act on a step, through a real trainer: what they do to the batch, the log, the metrics and what comes after.
import { until } from '@backtalk/kit/testing';
import { LessonChanged_Action, WeightsStaged_Stage } from '@backtalk/proto/facts';
import { afterEach, describe, expect, it } from 'vitest';

import type { Trainer } from './service.js';
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
    ['kl_step', onlyFirst({ kl_step: 54 })],
  ])('%s: no version comes of it, its samples are settled by name, and learning goes on', async (guard, worker) => {
    await rigWith(worker);
    const trainer = await rig.startTrainer();
    await rig.correct(2, { name: 'bad' });
    const [, skipped] = await rig.untilBatches(2);
    expect(skipped).toMatchObject({ why: 'step_skipped', version: '' });
    expect(skipped?.detail).toMatch(new RegExp(`^${guard}: `));
    expect(skipped?.settled.map(({ reason }) => reason)).toEqual(['step_skipped', 'step_skipped']);
    expect(rig.worker.finished).toEqual(['backtalk-1']);
    // Nothing names what it made: it would lie there for ever, whoever is forgotten.
    const tensors = rig.worker.made.filter(({ name }) => name.endsWith('.safetensors'));
    expect(await Promise.all(tensors.map(({ digest }) => rig.blobs.has(digest)))).toEqual(tensors.map(() => false));
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

it('turns that are longer than a sample may be are settled before a batch closes, and cost no sound ones', async () => {
  await rigWith({ dropped: (turn) => (turn.startsWith('long') ? 'too_long' : '') });
  const trainer = await rig.startTrainer('one', {
    BACKTALK_RECIPE_SET: `${environment.BACKTALK_RECIPE_SET},sampleTokensMax=64`,
  });
  await rig.correct(3, { name: 'long', promptIds: Array.from({ length: 53 }, (_, n) => n) });
  await rig.correct(2, { name: 'good' });
  await rig.untilVersions(1);
  const [batch] = await rig.batches();
  expect(batch?.samples.map(({ turn }) => turn)).toEqual(['good0', 'good1']);
  expect(batch?.settled.map(({ reason }) => reason)).toEqual(['too_long', 'too_long', 'too_long']);
  expect(await rig.metric(trainer, /turns_settled_total\{.*reason="too_long"/)).toBe(3);
});

it('a step of which the worker left the sampled terms out makes a version, and the guard is counted', async () => {
  await rigWith({ measurements: () => ({ gradient_norm: 1, ess: 0.1, guard_ess: 1 }) });
  const trainer = await rig.startTrainer();
  await rig.correct(2);
  await rig.untilVersions(1);
  expect(await rig.metric(trainer, /guards_acted_total\{.*guard="ess",action="mask"/)).toBe(1);
});

const isHeld = (trainer: Trainer) => rig.metric(trainer, /ledger_state\{.*state="held"/);

describe('batches that are given up in a row', () => {
  /** Each step is skipped, three batches are spent, and a fourth batch's samples wait. */
  async function skipThree(): Promise<Trainer> {
    await rigWith({ measurements: () => ({ kl_step: 54 }) });
    const trainer = await rig.startTrainer();
    for (let n = 1; n <= 3; n += 1) {
      await rig.correct(2, { name: `s${n}x` });
      await rig.untilBatches(2 * n);
    }
    await until(async () => (await isHeld(trainer)) === 1, { what: 'Training rests' });
    await rig.correct(2, { name: 'later', hint: 'Name the source of each figure.' });
    await until(async () => (await rig.metric(trainer, /turns_pending\{.*kind="effective"/)) === 2);
    return trainer;
  }

  it('three whose steps are skipped hold training, also over a restart, until an operator resumes', async () => {
    const first = await skipThree();
    await rig.stopTrainer(first);
    const second = await rig.startTrainer('two');
    await until(async () => (await rig.metric(second, /turns_pending\{.*kind="effective"/)) === 2);
    expect(await isHeld(second)).toBe(1);
    expect(await rig.batches()).toHaveLength(6);
    await rig.resume(0, 6);
    expect((await rig.untilBatches(8))[7]).toMatchObject({ why: 'step_skipped' });
    // Counted anew.
    await until(async () => (await rig.metric(second, /ledger_state\{.*state="collecting"/)) === 1);
  });

  it('a lesson that is retired lets training go on after skipped steps', async () => {
    await skipThree();
    const [lesson] = (await rig.batches()).at(-1)?.lessons ?? [];
    await rig.changeLesson({ id: 'c1', action: LessonChanged_Action.ACTION_RETIRE, lesson: lesson?.id ?? '' });
    expect((await rig.untilBatches(9)).map(({ why }) => why).slice(6)).toEqual(['lessons', 'full', 'step_skipped']);
  });

  it('two, with a version between that was made, hold nothing', async () => {
    await rigWith({ measurements: ({ version }) => ({ kl_step: version === 'backtalk-v3' ? 0.1 : 54 }) });
    const trainer = await rig.startTrainer();
    for (const [at, facts] of [2, 4, 5, 7, 9].entries()) {
      await rig.correct(2, { name: `t${at}x` });
      await rig.untilBatches(facts);
      if (facts !== 5) continue;
      await rig.untilVersions(1);
      await rig.stage('backtalk-v3', WeightsStaged_Stage.STAGE_STABLE);
    }
    await until(async () => (await rig.metric(trainer, /ledger_state\{.*state="collecting"/)) === 1);
  });
});

describe('versions that are burned in a row', () => {
  /** Three versions are trained and burned, and a fourth batch's samples wait. */
  async function burnThree(): Promise<Trainer> {
    await rigWith({});
    const trainer = await rig.startTrainer();
    for (let n = 1; n <= 3; n += 1) {
      await rig.correct(2, { name: `b${n}x` });
      await rig.untilVersions(n);
      await rig.stage(`backtalk-v${n}`, WeightsStaged_Stage.STAGE_BURNED);
    }
    await until(async () => (await isHeld(trainer)) === 1, { what: 'Training rests' });
    await rig.correct(2, { name: 'later', hint: 'Name the source of each figure.' });
    await until(async () => (await rig.metric(trainer, /turns_pending\{.*kind="effective"/)) === 2);
    return trainer;
  }

  it('three hold training, also over a restart, and no correction is spent, until an operator resumes', async () => {
    const first = await burnThree();
    await rig.stopTrainer(first);
    const second = await rig.startTrainer('two');
    await until(async () => (await rig.metric(second, /turns_pending\{.*kind="effective"/)) === 2);
    expect(await isHeld(second)).toBe(1);
    expect(await rig.batches()).toHaveLength(3);
    await rig.pause(false);
    expect(await isHeld(second)).toBe(1);
    await rig.resume(3);
    expect((await rig.untilVersions(4))[3]).toMatchObject({ version: 'backtalk-v4', parent: 'backtalk-v0' });
    // Counted anew.
    await rig.stage('backtalk-v4', WeightsStaged_Stage.STAGE_BURNED);
    await rig.correct(2, { name: 'last' });
    await rig.untilVersions(5);
  });

  it('a lesson that is given, edited or retired lets training go on', async () => {
    await burnThree();
    expect(await rig.batches()).toHaveLength(3);
    const [lesson] = (await rig.batches()).at(-1)?.lessons ?? [];
    await rig.changeLesson({ id: 'c1', action: LessonChanged_Action.ACTION_RETIRE, lesson: lesson?.id ?? '' });
    expect((await rig.untilVersions(4))[3]).toMatchObject({ parent: 'backtalk-v0' });
  });

  it('two, and one that served, hold nothing', async () => {
    await rigWith({});
    await rig.startTrainer();
    const { STAGE_BURNED, STAGE_STABLE } = WeightsStaged_Stage;
    for (const [at, stage] of [STAGE_BURNED, STAGE_BURNED, STAGE_STABLE, STAGE_BURNED].entries()) {
      await rig.correct(2, { name: `b${at}x` });
      await rig.untilVersions(at + 1);
      await rig.stage(`backtalk-v${at + 1}`, stage);
    }
    await rig.correct(2, { name: 'last' });
    expect((await rig.untilVersions(5))[4]).toMatchObject({ parent: 'backtalk-v3' });
  });
});

function onlyFirst(measurements: Readonly<Record<string, number>>): NonNullable<RigOptions['worker']> {
  return { measurements: ({ version }) => (version === 'backtalk-v1' ? measurements : {}) };
}
