import { until } from '@backtalk/kit/testing';
import { Lesson_State, LessonChanged_Action, WeightsStaged_Stage } from '@backtalk/proto/facts';
import { afterEach, describe, expect, it } from 'vitest';

import { recipePresets } from './domain/recipe.js';
import { FakeTrainingWorker } from './testing/fake-training-worker.js';
import { TrainerRig, type RigOptions } from './testing/trainer-rig.js';

let rig: TrainerRig;

async function rigWith(options: RigOptions): Promise<void> {
  rig = await TrainerRig.start(options);
}

afterEach(async () => {
  await rig.stop();
});

describe('a batch that waits for a worker', () => {
  it('what ends a lesson does not wait for its step, whose report is read all the same', async () => {
    await rigWith({ environment: { BACKTALK_RECIPE_SET: 'effective=2,effectiveMin=2' } });
    await rig.startTrainer();
    await rig.worker.kill();
    await rig.correct(1);
    await rig.correct(1, { name: 'other', user: 'user1', hint: 'From now on use tables.' });
    const [first] = await rig.untilBatches(1);
    const [lesson = '', other = ''] = first?.lessons.map(({ id }) => id) ?? [];
    await rig.changeLesson({ id: 'c1', lesson, user: 'user0', action: LessonChanged_Action.ACTION_RETIRE });
    const [, second] = await rig.untilBatches(2);
    expect(second?.why).toBe('lessons');
    expect(second?.lessons.find(({ id }) => id === lesson)?.state).toBe(Lesson_State.STATE_RETIRED);
    expect(await rig.versions()).toEqual([]);
    await rig.worker.start();
    await rig.untilVersions(1);
    await rig.stage('backtalk-v1', WeightsStaged_Stage.STAGE_STABLE);
    await rig.correct(2, { name: 'next', user: 'user1' });
    const [, , third] = await rig.untilBatches(3);
    const stepsOf = (wanted: string) => third?.lessons.find(({ id }) => id === wanted)?.steps;
    expect([stepsOf(lesson), stepsOf(other)]).toEqual([0, recipePresets.tiny.recipe.optimizerSteps]);
  });

  it('a batch is given up in the queue as soon as an operator says so, and never trained', async () => {
    await rigWith({
      environment: { BACKTALK_POLICIES: 'backtalk,other', BACKTALK_RECIPE_SET: 'effective=2,effectiveMin=2' },
    });
    let goOn: () => void = () => undefined;
    const held = new Promise<void>((resolve) => (goOn = resolve));
    rig.worker.plot = () => held;
    await rig.startTrainer();
    await rig.correct(2, { name: 'other', policy: 'other' });
    await until(() => rig.worker.steps.length === 1, { what: 'The step of the other policy' });
    await rig.correct(2, { name: 'own' });
    const own = async () => (await rig.batches()).filter(({ policy }) => policy === 'backtalk');
    await until(async () => (await own()).length === 1, { what: 'The batch in the queue' });
    await rig.abandon(1);
    await until(async () => (await own()).length === 2, { what: 'The end of the batch in the queue' });
    expect((await own())[1]).toMatchObject({ why: 'abandoned' });
    goOn();
    await rig.untilVersions(1);
    expect(rig.worker.steps.map(({ request }) => request.policy)).toEqual(['other']);
  });

  it('two policies take their steps beside each other on two workers, and a third waits its turn', async () => {
    const other = new FakeTrainingWorker();
    await other.start();
    await rigWith({
      environment: {
        BACKTALK_POLICIES: 'backtalk,other,third',
        BACKTALK_RECIPE_SET: 'effective=2,effectiveMin=2',
      },
    });
    let goOn: () => void = () => undefined;
    const held = new Promise<void>((resolve) => (goOn = resolve));
    for (const worker of [rig.worker, other]) worker.plot = () => held;
    const addresses = `${rig.worker.address},${other.address}`;
    const trainer = await rig.startTrainer('one', { BACKTALK_TRAINING_WORKER: addresses });
    for (const policy of ['backtalk', 'other', 'third']) await rig.correct(2, { name: policy, policy });
    const atWork = () => rig.worker.steps.length + other.steps.length;
    await until(() => atWork() === 2, { what: 'A step on each worker' });
    const queued = (policy: string) =>
      rig.metric(trainer, new RegExp(`ledger_state\\{policy="${policy}",.*state="queued"`));
    const waiting = async () => (await Promise.all(['backtalk', 'other', 'third'].map(queued))).toSorted();
    await until(async () => (await waiting()).join() === '0,0,1', { what: 'The third in the queue' });
    expect([rig.worker.steps.length, other.steps.length]).toEqual([1, 1]);
    goOn();
    await rig.untilVersions(3);
    expect(rig.failures).toEqual([]);
    await other.kill();
  });
});
