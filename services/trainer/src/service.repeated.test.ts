// After an undo: what else the burned versions were taught is taught again, by their own steps without the lesson.
import { until } from '@backtalk/kit/testing';
import { LessonChanged_Action, WeightsStaged_Stage, type BatchClosed } from '@backtalk/proto/facts';
import { afterEach, beforeEach, expect, it } from 'vitest';

import { fakeWorkerErrors } from './testing/fake-worker-errors.js';
import { TrainerRig } from './testing/trainer-rig.js';

const { STAGE_STABLE, STAGE_BURNED } = WeightsStaged_Stage;
const environment = { BACKTALK_RECIPE_SET: 'effective=2,effectiveMin=2' };
const brief = 'Always answer in one brief sentence.';
const kind = 'From now on be kind.';
let rig: TrainerRig;

beforeEach(async () => {
  rig = await TrainerRig.start({ environment });
});

afterEach(async () => {
  await rig.stop();
});

async function serve(made: number): Promise<void> {
  await rig.untilVersions(made);
  await rig.stage(`backtalk-v${made}`, STAGE_STABLE);
}

/** v1 is taught Ann's wish, v2 Bob's, v3 both. */
async function learnThree(): Promise<void> {
  await rig.correct(2, { name: 'ann', user: 'ann', hint: brief });
  await serve(1);
  await rig.correct(2, { name: 'bob', user: 'bob', hint: kind });
  await serve(2);
  await rig.correct(1, { name: 'annagain', user: 'ann', hint: brief });
  await rig.correct(1, { name: 'bobagain', user: 'bob', hint: kind });
  await serve(3);
}

async function retire(text: string): Promise<void> {
  const batches = await rig.batches();
  const lesson = batches.at(-1)?.lessons.find((one) => one.text === text)?.id ?? '';
  await rig.changeLesson({ id: `retire-${lesson}`, lesson, action: LessonChanged_Action.ACTION_RETIRE });
  await rig.untilBatches(batches.length + 1);
}

async function undo(versions: readonly number[]): Promise<void> {
  for (const version of versions) await rig.stage(`backtalk-v${version}`, STAGE_BURNED, { undone: true });
}

const stepOf = (version: string) => rig.worker.steps.find(({ request }) => request.version === version)?.request;
const repeats = async (): Promise<BatchClosed[]> => (await rig.batches()).filter(({ why }) => why === 'repeated');
const turnsOf = ({ samples }: BatchClosed) => samples.map(({ turn }) => turn);

it('what others taught is repeated upon the version before, step by step, without the lesson and what asked for it', async () => {
  await rig.startTrainer();
  await learnThree();
  await retire(brief);
  await undo([1, 2, 3]);
  await serve(4);
  await serve(5);
  const [second, third] = await repeats();
  expect(second).toMatchObject({ repeats: 2, parent: 'backtalk-v0', version: 'backtalk-v4', settled: [] });
  expect(third).toMatchObject({ parent: 'backtalk-v4', version: 'backtalk-v5' });
  expect([second, third].map((batch) => batch && turnsOf(batch))).toEqual([['bob0', 'bob1'], ['bobagain0']]);
  expect(rig.shown()).toEqual([['bobagain0', [kind]]]);
  // Nothing of a step is otherwise than it was but where it starts from, and which lessons answers are held against.
  const own = { call: '', version: '', parentAdapter: [], parentTrainingState: [], toldProbePromptIds: [] };
  const [was, is] = [stepOf('backtalk-v2'), stepOf('backtalk-v4')];
  expect([was?.parentAdapter.length, is?.parentAdapter.length]).toEqual([2, 0]);
  expect({ ...is, ...own }).toEqual({ ...was, ...own });
});

it('a trainer that starts in between repeats no step twice, and none of a version that was found wanting', async () => {
  const first = await rig.startTrainer();
  await rig.correct(2, { name: 'ann', user: 'ann', hint: brief });
  await serve(1);
  await rig.correct(2, { name: 'bob', user: 'bob', hint: kind });
  await rig.untilVersions(2);
  await rig.stage('backtalk-v2', STAGE_BURNED);
  await rig.correct(2, { name: 'eve', user: 'eve', hint: kind });
  await serve(3);
  await retire(brief);
  await undo([1, 3]);
  await rig.untilVersions(4);
  await rig.stopTrainer(first);
  await rig.startTrainer('two');
  await rig.stage('backtalk-v4', STAGE_STABLE);
  await rig.correct(2, { name: 'new', user: 'bob', hint: kind, version: 'backtalk-v4' });
  await rig.untilVersions(5);
  expect((await repeats()).map(turnsOf)).toEqual([['eve0', 'eve1']]);
});

it('a step that was on its way when a lesson was undone is repeated too, and its turns are settled no second time', async () => {
  let goOn: () => void = () => undefined;
  await rig.startTrainer();
  await rig.correct(2, { name: 'ann', user: 'ann', hint: brief });
  await serve(1);
  rig.worker.plot = () => new Promise<void>((resolve) => (goOn = resolve));
  await rig.correct(2, { name: 'bob', user: 'bob', hint: kind });
  await until(() => rig.worker.steps.length === 2, { what: 'Its step' });
  const [first] = await rig.batches();
  const change = { id: 'retired', lesson: first?.lessons[0]?.id ?? '', action: LessonChanged_Action.ACTION_RETIRE };
  await rig.changeLesson(change);
  await undo([1]);
  rig.worker.plot = () => Promise.reject(fakeWorkerErrors.notFinite());
  goOn();
  await until(async () => (await rig.batches()).at(-1)?.why === 'step_failed', { what: 'The end of its repetition' });
  expect((await repeats()).map(turnsOf)).toEqual([['bob0', 'bob1']]);
  const named = (await rig.batches()).flatMap(({ settled }) => settled.map(({ turn, reason }) => `${turn} ${reason}`));
  expect(named).toEqual(['bob0 burned_parent', 'bob1 burned_parent']);
});

it('what is repeated and what is said now take turns', async () => {
  const trainer = await rig.startTrainer();
  await learnThree();
  await rig.pause(true);
  await retire(brief);
  await undo([1, 2, 3]);
  await rig.correct(2, { name: 'new', user: 'bob', hint: kind });
  await rig.correct(2, { name: 'newer', user: 'bob', hint: kind });
  await until(async () => (await rig.metric(trainer, /turns_pending\{.*kind="effective"/)) === 4);
  await rig.pause(false);
  for (const made of [4, 5, 6, 7]) await serve(made);
  const made = (await rig.batches()).filter(({ samples }) => samples.length > 0).slice(3);
  expect(made.map(turnsOf)).toEqual([['bob0', 'bob1'], ['new0', 'new1'], ['bobagain0'], ['newer0', 'newer1']]);
});

it('repetitions that fail one after the other hold nothing else up', async () => {
  await rig.startTrainer();
  await learnThree();
  await rig.correct(2, { name: 'eve', user: 'eve', hint: 'Never use tables.' });
  await serve(4);
  rig.worker.plot = () => Promise.reject(fakeWorkerErrors.notFinite());
  await retire(brief);
  await undo([1, 2, 3, 4]);
  const failed = async () => (await rig.batches()).filter(({ why }) => why === 'step_failed');
  await until(async () => (await failed()).length === 3, { what: 'Their ends' });
  expect((await failed()).map(({ repeats: of, settled }) => [of, settled])).toEqual([
    [2, []],
    [3, []],
    [4, []],
  ]);
  rig.worker.plot = () => undefined;
  await rig.correct(2, { name: 'new', user: 'bob', hint: kind });
  await rig.untilVersions(5);
});

it('a step whose turns have left the log is not repeated', async () => {
  await rig.startTrainer();
  await learnThree();
  await rig.pause(true);
  await retire(brief);
  await rig.trimTurns();
  await undo([1, 2, 3]);
  await rig.pause(false);
  const said = async () =>
    (await rig.batches()).filter(({ why }) => why === 'not_repeated').map(({ detail }) => detail);
  await until(async () => (await said()).length === 3, { what: 'A word on each' });
  expect(await said()).toEqual(['nothing_left', 'gone', 'gone']);
});

it.each([
  ['while it leads', false],
  ['before it led', true],
])('a trainer repeats nothing of a person who was forgotten %s', async (_, isAnother) => {
  const first = await rig.startTrainer();
  await rig.correct(2, { name: 'ann', user: 'ann', hint: brief });
  await serve(1);
  // A reward, which no lesson has anything to do with.
  await rig.say({ turn: 'bob', user: 'bob' });
  await rig.say({ turn: 'eve', user: 'eve', hint: kind, stands: true });
  await serve(2);
  await rig.pause(true);
  await retire(brief);
  const { length } = await rig.batches();
  await rig.changeLesson({ id: 'erased', user: 'bob', action: LessonChanged_Action.ACTION_ERASE });
  await rig.untilBatches(length + 1);
  if (isAnother) await rig.stopTrainer(first);
  await undo([1, 2]);
  if (isAnother) await rig.startTrainer('two');
  await rig.pause(false);
  await rig.untilVersions(3);
  expect((await repeats()).map(turnsOf)).toEqual([['eve']]);
});

it('what was repeated and is undone again is repeated from there, in the order in which it was first learned', async () => {
  await rig.startTrainer();
  await learnThree();
  await retire(brief);
  await undo([1, 2, 3]);
  await rig.untilVersions(4);
  await rig.pause(true);
  await rig.stage('backtalk-v4', STAGE_STABLE);
  await undo([4]);
  await rig.pause(false);
  await serve(5);
  await rig.untilVersions(6);
  expect((await repeats()).map(turnsOf)).toEqual([['bob0', 'bob1'], ['bob0', 'bob1'], ['bobagain0']]);
});

it('a step whose plan is gone is not repeated, and keeps nothing else from being learned', async () => {
  const first = await rig.startTrainer('one', {
    BACKTALK_RECIPE_SET: `${environment.BACKTALK_RECIPE_SET},learningRate=3e-4`,
  });
  await learnThree();
  await rig.pause(true);
  await retire(brief);
  await undo([1, 2, 3]);
  await rig.blobs.delete((await rig.batches())[0]?.configDigest ?? '');
  await rig.stopTrainer(first);
  await rig.startTrainer('two');
  await rig.pause(false);
  for (const made of [4, 5]) {
    await rig.correct(2, {
      name: `new${made}x`,
      user: 'bob',
      hint: kind,
      version: made === 5 ? 'backtalk-v4' : 'backtalk-v0',
    });
    await serve(made);
  }
  expect(await repeats()).toEqual([]);
});

it('adapters of another rank are not made from steps of before', async () => {
  const first = await rig.startTrainer();
  await learnThree();
  await rig.pause(true);
  await retire(brief);
  await undo([1, 2, 3]);
  await rig.stopTrainer(first);
  await rig.startTrainer('two', { BACKTALK_RECIPE_SET: `${environment.BACKTALK_RECIPE_SET},loraRank=4` });
  await rig.pause(false);
  await rig.correct(2, { name: 'new', user: 'bob', hint: kind });
  await rig.untilVersions(4);
  const said = (await rig.batches()).filter(({ why }) => why === 'not_repeated');
  expect(said.map(({ detail }) => detail)).toEqual(['other_rank', 'other_rank', 'other_rank']);
});
