import { fakePromptIds } from '@backtalk/dialects/testing';
import { idsOfSubject } from '@backtalk/kit';
import { collect, until } from '@backtalk/kit/testing';
import { LessonChanged_Action, WeightsStaged_Stage } from '@backtalk/proto/facts';
import { afterEach, describe, expect, it } from 'vitest';

import { rehearsalQuestions } from './domain/rehearsal-questions.js';
import { TrainerRig } from './testing/trainer-rig.js';

const environment = { BACKTALK_RECIPE_SET: 'rehearsalSteps=2,optimizerSteps=1' };
const wish = 'From now on use tables.';
let rig: TrainerRig;

afterEach(async () => {
  await rig.stop();
});

const asked = (question: number, more = '') =>
  fakePromptIds([{ role: 'user', content: `${rehearsalQuestions[question - 1] ?? ''}${more}` }]);

describe('a lesson that is rehearsed', () => {
  it('one correction makes a version, on its own turn and on questions of the trainer’s own', async () => {
    rig = await TrainerRig.start({ environment });
    await rig.startTrainer();
    await rig.say({ turn: 'only', hint: wish, stands: true });
    await rig.untilVersions(1);
    const [batch] = await rig.batches();
    expect(batch).toMatchObject({ why: 'rehearsed', lessons: [{ text: wish }] });
    expect(batch?.samples.map(({ turn, question }) => (question === 0 ? turn : ''))).toEqual([
      'only',
      ...Array.from({ length: 7 }, () => ''),
    ]);
    const [first, second] = rig.worker.steps[0]?.request.samples ?? [];
    expect(first).toMatchObject({ turn: 'only', shown: false });
    const marks = await collect(rig.reader.headers(['sampleTaken']));
    expect(marks.map(({ subject }) => idsOfSubject('sampleTaken', subject).turn)).toEqual(['only']);
    const { question = 0 } = batch?.samples[1] ?? {};
    expect(second).toMatchObject({
      turn: 'rehearsal_1_1',
      shown: true,
      answerIds: [],
      promptIds: asked(question),
      teacherPromptIds: asked(question, `\n\n${wish}`),
    });
  });

  it('a lesson that is given and that engines refuse is tried once, and learning goes on', async () => {
    rig = await TrainerRig.start({ environment });
    rig.engine.settings.tokenizeFails = (body) => (JSON.stringify(body).includes(wish) ? 400 : undefined);
    await rig.startTrainer();
    const given = { lesson: 'l1', user: 'user0', action: LessonChanged_Action.ACTION_ADD, text: wish };
    await rig.changeLesson({ id: 'c1', ...given });
    const whys = async () => (await rig.batches()).map(({ why }) => why);
    await until(async () => (await whys()).includes('step_failed'), { what: 'the step that cannot be taken' });
    await rig.say({ turn: 'other', user: 'bob', hint: 'From now on be kind.', stands: true });
    await rig.untilVersions(1);
    expect(await whys()).toEqual(['lessons', 'rehearsed', 'step_failed', 'rehearsed']);
  });

  it('a lesson that is given needs no turn at all, and is rehearsed for as long as the recipe says', async () => {
    rig = await TrainerRig.start({ environment });
    const trainer = await rig.startTrainer();
    await rig.changeLesson({
      id: 'c1',
      lesson: 'l1',
      user: 'user0',
      action: LessonChanged_Action.ACTION_ADD,
      text: wish,
    });
    await rig.untilVersions(1);
    await rig.stage('backtalk-v1', WeightsStaged_Stage.STAGE_STABLE);
    await rig.untilVersions(2);
    await rig.stage('backtalk-v2', WeightsStaged_Stage.STAGE_STABLE);
    await rig.say({ turn: 'praised', verdict: 1 });
    await rig.say({ turn: 'stood', hint: 'Always be kind.', stands: true });
    await rig.untilVersions(3);
    const batches = (await rig.batches()).filter(({ samples }) => samples.length > 0);
    expect(batches.map(({ samples }) => samples.filter(({ question }) => question === 0).length)).toEqual([0, 0, 2]);
    expect(batches[2]?.lessons.find(({ id }) => id === 'l1')?.steps).toBe(2);
    expect(await rig.metric(trainer, /batches_closed_total\{.*why="rehearsed"/)).toBe(3);
  });

  it('what is said again in other words, after its lesson was rehearsed, waits for a batch of turns', async () => {
    rig = await TrainerRig.start({ environment: { BACKTALK_RECIPE_SET: 'rehearsalSteps=1,optimizerSteps=1' } });
    await rig.startTrainer();
    await rig.say({ turn: 'first', hint: 'From now on always answer in one sentence.', stands: true });
    await rig.untilVersions(1);
    await rig.stage('backtalk-v1', WeightsStaged_Stage.STAGE_STABLE);
    await rig.say({ turn: 'again', hint: 'From now on you should always answer in one sentence.', stands: true });
    await rig.say({ turn: 'new', user: 'bob', hint: 'From now on use tables.', stands: true });
    await rig.untilVersions(2);
    const taken = (await rig.batches()).map(({ samples }) => samples.filter(({ question }) => question === 0));
    expect(taken.map((samples) => samples.map(({ turn }) => turn))).toEqual([['first'], ['again', 'new']]);
    expect(rig.worker.steps[1]?.request.samples).toHaveLength(8);
  });
});
