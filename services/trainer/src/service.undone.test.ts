// Versions that an operator's word has burned, and what was learned from them: learning goes on from the version before.
import { until } from '@backtalk/kit/testing';
import { Lesson_State, WeightsStaged_Stage } from '@backtalk/proto/facts';
import { WeightsManifest } from '@backtalk/proto/weights';
import { afterEach, beforeEach, expect, it } from 'vitest';

import { TrainerRig } from './testing/trainer-rig.js';

const environment = { BACKTALK_RECIPE_SET: 'rehearsalSteps=0,effective=2,effectiveMin=2' };
const { STAGE_STABLE, STAGE_BURNED } = WeightsStaged_Stage;
let rig: TrainerRig;

beforeEach(async () => {
  rig = await TrainerRig.start({ environment });
});

afterEach(async () => {
  await rig.stop();
});

async function learn(versions: readonly number[]): Promise<void> {
  for (const made of versions) {
    await rig.correct(2, { name: `v${String(made)}x` });
    await rig.untilVersions(made);
    await rig.stage(`backtalk-v${String(made)}`, STAGE_STABLE);
  }
}

/** Learning goes on from the first of three versions, whose optimiser's state is there no more. */
async function goBack(): Promise<void> {
  await rig.startTrainer();
  await learn([1, 2, 3]);
  const [first] = await rig.versions();
  const { trainingState } = WeightsManifest.decode(await rig.blobs.get(first?.manifestDigest ?? ''));
  for (const { digest } of trainingState) await rig.blobs.delete(digest);
  rig.worker.blobs.clear();
  for (const version of ['backtalk-v2', 'backtalk-v3']) await rig.stage(version, STAGE_BURNED);
  await rig.correct(2, { name: 'after', version: 'backtalk-v1' });
  await rig.untilVersions(4);
}

it('a version whose optimiser’s state was swept is a parent all the same, and the optimiser starts afresh', async () => {
  await goBack();
  expect((await rig.versions()).at(-1)).toMatchObject({ version: 'backtalk-v4', parent: 'backtalk-v1' });
  const { parentAdapter, parentTrainingState } = rig.worker.steps.at(-1)?.request ?? {};
  expect([parentAdapter?.length, parentTrainingState?.length]).toEqual([2, 0]);
});

it('a version whose optimiser started afresh does so again when it is made again or replayed, whatever its parent has by then', async () => {
  await goBack();
  await rig.rebuild('backtalk-v4', 'one');
  expect(await rig.untilRebuilt('one')).toMatchObject({ state: 'equal', done: 1, of: 1 });
  await rig.stage('backtalk-v4', STAGE_STABLE);
  await learn([5]);
  for (const version of ['backtalk-v1', 'backtalk-v4']) await rig.loseFilesOf(version);
  await rig.rebuild('backtalk-v5', 'two');
  expect(await rig.untilRebuilt('two')).toMatchObject({ state: 'equal', detail: '', done: 3, of: 3 });
  await rig.replay('backtalk-v4', 'backtalk-v5', 'three');
  expect(await rig.untilRebuilt('three')).toMatchObject({ state: 'equal', detail: '', done: 2, of: 2 });
  await rig.replay('backtalk-v1', 'backtalk-v5', 'four');
  expect(await rig.untilRebuilt('four')).toMatchObject({ state: 'equal', detail: '', done: 3, of: 3 });
});

it('the log says which lessons are to be learned again once the version that decided of them is burned, unasked', async () => {
  const found = { turns: 4, questions: 0, hidden: false, askedAgain: [], chance: -10, told: 10, own: 9 };
  const progress = {
    of: (_: string, lessons: readonly { id: string }[]) =>
      Promise.resolve(new Map(lessons.map(({ id }) => [id, found]))),
  };
  await rig.startTrainer('one', {}, { progress });
  await learn([1, 2]);
  const stateIs = (wanted: Lesson_State) => async () => (await rig.batches()).at(-1)?.lessons[0]?.state === wanted;
  await until(stateIs(Lesson_State.STATE_LEARNED), { what: 'A learned lesson' });
  // The base is measured for no lesson: no other fact would say so.
  for (const version of ['backtalk-v1', 'backtalk-v2']) await rig.stage(version, STAGE_BURNED);
  await until(stateIs(Lesson_State.STATE_ACTIVE), { what: 'Its being open again' });
  expect((await rig.batches()).at(-1)?.samples).toEqual([]);
});
