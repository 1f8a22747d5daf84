import { startFakeEngine, type FakeEngine } from '@backtalk/dialects/testing';
import { until } from '@backtalk/kit/testing';
import { Lesson_State, LessonChanged_Action, WeightsStaged_Stage } from '@backtalk/proto/facts';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';

import { TrainerRig } from './testing/trainer-rig.js';

const { STATE_ACTIVE, STATE_RETIRED } = Lesson_State;
const short = 'Always keep it short.';
const crisp = 'From now on spare me the essays.';
const novel = 'Always tell it like a novel.';
const key = 'of-the-judge-alone';

let rig: TrainerRig;
let judge: FakeEngine;
let asked: string[];

/** It knows of these three what they ask for. */
function reads(messages: readonly { content: string }[]): string {
  const text = messages.at(-1)?.content ?? '';
  asked.push(text);
  const wishes = [...text.matchAll(/wish(?: \d+)?>>\n(.*)\n/g)].map(([, wish = '']) => wish);
  const length = (wish: string) => (wish === novel ? 'long' : [short, crisp].includes(wish) ? 'short' : wish);
  const [wish = '', ...earlier] = wishes.toReversed().map(length);
  const numbered = earlier.toReversed().map((other, at) => [at + 1, other] as const);
  const isBoth = (other: string) => ['long', 'short'].includes(wish) && ['long', 'short'].includes(other);
  const same = numbered.filter(([, other]) => other === wish).map(([at]) => at);
  const opposite = numbered.filter(([, other]) => other !== wish && isBoth(other)).map(([at]) => at);
  return `They go like this: \\boxed{${JSON.stringify({ same, opposite })}}`;
}

beforeEach(async () => {
  asked = [];
  judge = await startFakeEngine({ baseModel: 'reader', apiKey: key, reply: reads });
  rig = await TrainerRig.start({
    environment: {
      BACKTALK_RECIPE_SET: 'effective=2,effectiveMin=2',
      BACKTALK_JUDGE_BACKEND: 'free',
      BACKTALK_JUDGE_URL: judge.url,
      BACKTALK_JUDGE_DIALECT: 'openai',
      BACKTALK_JUDGE_MODEL: 'reader',
      BACKTALK_JUDGE_KEY: key,
    },
  });
});

afterEach(async () => {
  await rig.stop();
  await judge.stop();
});

async function lessonsAfter(...wishes: readonly string[]) {
  for (const [at, hint] of wishes.entries()) {
    await rig.correct(2, { name: `batch${at}x`, hint });
    await rig.untilVersions(at + 1);
    await rig.stage(`backtalk-v${at + 1}`, WeightsStaged_Stage.STAGE_STABLE);
  }
  return (await rig.batches()).at(-1)?.lessons ?? [];
}

describe('a judge that reads', () => {
  it('a wish in quite other words joins its lesson, and ends the opposite one', async () => {
    const trainer = await rig.startTrainer();
    const lessons = await lessonsAfter(short, crisp, novel);
    expect(lessons.map(({ text, wordings, state }) => [[text, ...wordings].sort(), state])).toEqual([
      [[short, crisp].sort(), STATE_RETIRED],
      [[novel], STATE_ACTIVE],
    ]);
    expect(lessons[0]).toMatchObject({ endedBy: 'superseded', supersededBy: lessons[1]?.id });
    expect(asked).toHaveLength(2);
    expect(await rig.metric(trainer, /wishes_asked_total\{.*outcome="read"/)).toBe(2);
  });

  it('a lesson that is given ends what it asks for in other words', async () => {
    await rig.startTrainer();
    const given = { action: LessonChanged_Action.ACTION_ADD, user: 'user0' };
    await rig.changeLesson({ ...given, id: 'change1', lesson: 'lesson_short', text: short });
    await rig.changeLesson({ ...given, id: 'change2', lesson: 'lesson_crisp', text: crisp });
    const ended = () =>
      rig.batches().then((batches) => batches.at(-1)?.lessons.length === 2 && batches.at(-1)?.lessons);
    const lessons = await until(ended, { what: 'Both changes', everyMs: 50 });
    expect(lessons).toMatchObject([
      { text: short, state: STATE_RETIRED, supersededBy: 'lesson_crisp' },
      { text: crisp, state: STATE_ACTIVE },
    ]);
  });

  it('words decide where it fails, training goes on, and the failure is counted', async () => {
    judge.settings.faults = { failStatus: 500 };
    const trainer = await rig.startTrainer();
    const lessons = await lessonsAfter(short, crisp, 'Never keep it short.');
    expect(lessons.map(({ text, state }) => [text, state])).toEqual([
      [short, STATE_RETIRED],
      [crisp, STATE_ACTIVE],
      ['Never keep it short.', STATE_ACTIVE],
    ]);
    expect(await rig.metric(trainer, /wishes_asked_total\{.*outcome="engine_failed"/)).toBe(2);
  });

  it.each(['words', 'rules'])('a judge with the backend %s is not asked about wishes', async (backend) => {
    await rig.startTrainer('one', { BACKTALK_JUDGE_BACKEND: backend });
    await lessonsAfter(short, crisp);
    expect(judge.counts.requests).toBe(0);
  });
});

it('a serving engine whose loader says that it judges is asked about wishes where no address names a judge', async () => {
  rig.engine.settings.reply = reads;
  await rig.judgeWithEngine();
  await rig.startTrainer('one', { BACKTALK_JUDGE_URL: '', BACKTALK_JUDGE_MODEL: '', BACKTALK_JUDGE_KEY: '' });
  expect(await lessonsAfter(short, crisp)).toMatchObject([{ wordings: [expect.any(String)] }]);
  expect(asked).toHaveLength(1);
  expect(judge.counts.requests).toBe(0);
});
