import { fakePromptIds } from '@backtalk/dialects/testing';
import { lessonProgress, systemClock } from '@backtalk/kit';
import { Lesson_State, LessonChanged_Action, WeightsStaged_Stage } from '@backtalk/proto/facts';
import { until } from '@backtalk/kit/testing';
import { afterEach, describe, expect, it } from 'vitest';

import type { Measured } from './domain/lesson-progress.js';
import type { TrainerOverrides } from './service.js';
import { TrainerRig, type RigOptions } from './testing/trainer-rig.js';

const { STAGE_STABLE, STAGE_BURNED } = WeightsStaged_Stage;
const { STATE_ACTIVE, STATE_HEARD, STATE_LEARNED, STATE_RETIRED } = Lesson_State;
const { ACTION_ADD, ACTION_RETIRE } = LessonChanged_Action;
const small = { BACKTALK_RECIPE_SET: 'effective=2,effectiveMin=2' };

let rig: TrainerRig;

async function rigWith(options: RigOptions = {}): Promise<void> {
  rig = await TrainerRig.start({ environment: small, ...options });
}

afterEach(async () => {
  await rig.stop();
});

async function untilServed(number: number): Promise<void> {
  await rig.untilVersions(number);
  await rig.stage(`backtalk-v${number}`, STAGE_STABLE);
}

describe('lessons in force', () => {
  it('an earlier lesson is shown to every teacher of the person’s later batches, and to no other person’s', async () => {
    await rigWith();
    await rig.startTrainer();
    await rig.correct(2, { name: 'a', hint: 'Always use tables.' });
    await untilServed(1);
    await rig.correct(2, { name: 'b', hint: 'From now on use metric units.' });
    await untilServed(2);
    const both = ['Always use tables.', 'From now on use metric units.'];
    expect(rig.shown()).toEqual([
      ['b0', both],
      ['b1', both],
    ]);
    await rig.correct(1, { name: 'mine', hint: 'No, I meant in Oslo.', stands: false });
    await rig.correct(1, { name: 'other', user: 'user1', hint: 'Begin with a title.' });
    await untilServed(3);
    expect(rig.shown()).toEqual([
      ['mine0', [...both, 'No, I meant in Oslo.']],
      ['other0', ['Begin with a title.']],
    ]);
    await rig.correct(2, { name: 'tenant', tenant: 'tenant1', hint: 'Answer in Dutch.', stands: false });
    await untilServed(4);
    expect(rig.shown().map(([, hints]) => hints)).toEqual([['Answer in Dutch.'], ['Answer in Dutch.']]);
  });

  it('a person who changes their mind is taught the newer wish alone, and the older one says why it ended', async () => {
    await rigWith();
    await rig.startTrainer();
    await rig.correct(2, { name: 'a', hint: 'Always use emojis.' });
    await untilServed(1);
    await rig.correct(2, { name: 'b', hint: 'Never use emojis.' });
    await untilServed(2);
    expect(rig.shown().map(([, hints]) => hints)).toEqual([['Never use emojis.'], ['Never use emojis.']]);
    const [older, newer] = (await rig.batches())[1]?.lessons ?? [];
    expect(older).toMatchObject({ state: STATE_RETIRED, endedBy: 'superseded', supersededBy: newer?.id });
    expect(newer).toMatchObject({ text: 'Never use emojis.', state: STATE_ACTIVE, sinceBatch: 2 });
  });

  it('a wish becomes a lesson when a second session brings it again; until then its own sample alone is shown it', async () => {
    await rigWith();
    await rig.startTrainer();
    await rig.correct(2, { name: 'a', hint: 'Use tables.', stands: false, session: 's1' });
    await rig.untilVersions(1);
    const [first] = await rig.batches();
    expect(first?.lessons).toMatchObject([{ text: 'Use tables.', state: STATE_HEARD, session: 's1', hints: 2 }]);
    expect(first?.samples).toMatchObject([
      { lessons: [], hindsight: 'Use tables.' },
      { lessons: [], hindsight: 'Use tables.' },
    ]);
    await rig.stage('backtalk-v1', STAGE_STABLE);
    await rig.correct(1, { name: 'fact', hint: 'It is Oslo.', stands: false, session: 's2' });
    await rig.correct(1, { name: 'b', hint: 'Tables, please!', stands: false, session: 's2' });
    await untilServed(2);
    expect((await rig.batches())[1]?.lessons).toMatchObject([
      { text: 'It is Oslo.', state: STATE_HEARD },
      { state: STATE_ACTIVE },
    ]);
    expect(rig.shown()).toEqual([
      ['fact0', ['Tables, please!', 'It is Oslo.']],
      ['b0', ['Tables, please!']],
    ]);
  });

  it('a complaint that comes back is shown to no teacher while what was said to stand is being learned', async () => {
    await rigWith();
    await rig.startTrainer();
    const complaint = { hint: 'Where are the rows?', stands: false };
    await rig.correct(1, { name: 'a', hint: 'Always use tables.' });
    await rig.correct(1, { name: 'b', ...complaint, session: 's1' });
    await untilServed(1);
    await rig.correct(2, { name: 'c', ...complaint, session: 's2' });
    await untilServed(2);
    const [wish, waiting] = (await rig.batches())[1]?.lessons ?? [];
    expect(waiting).toMatchObject({ text: 'Where are the rows?', state: STATE_ACTIVE, waitsFor: wish?.id });
    expect(rig.shown()).toEqual([
      ['c0', ['Always use tables.']],
      ['c1', ['Always use tables.']],
    ]);
  });

  it('a lesson that was learned in a version that is burned is active again', async () => {
    await rigWith();
    await rig.startTrainer('one', {}, { progress: progressOf(() => 1) });
    for (const n of [1, 2]) {
      await rig.correct(2, { name: `batch${n}x` });
      await untilServed(n);
      await rig.untilBatches(2 * n);
    }
    const [learned] = (await rig.batches()).at(-1)?.lessons ?? [];
    expect(learned).toMatchObject({ state: STATE_LEARNED, sinceBatch: 3, steps: 8 });
    await rig.stage('backtalk-v2', STAGE_BURNED);
    await rig.correct(2, { name: 'after', hint: 'It is Oslo.', stands: false, version: 'backtalk-v1' });
    await rig.untilVersions(3);
    const [again] = (await rig.batches()).at(-1)?.lessons ?? [];
    // What it is built upon was asked anew.
    expect(again).toMatchObject({ state: STATE_ACTIVE, measures: [{ batch: 1, steps: 0 }], steps: 0, sinceBatch: 5 });
  });
});

describe('the progress of a lesson', () => {
  const [small, emoji] = ['Always write it small.', 'Always end with a smile.'];

  it('each lesson’s state follows from its own progress, whatever is left to the teacher of both', async () => {
    await rigWith({ worker: { divergence: () => 0.1 } });
    await rig.startTrainer('one', {}, { progress: progressOf((text) => (text === small ? 1 : 0)) });
    for (const n of [1, 2]) {
      await rig.correct(1, { name: `a${n}x`, hint: small });
      await rig.correct(1, { name: `b${n}x`, hint: emoji });
      await untilServed(n);
      await rig.untilBatches(2 * n);
    }
    const measured = (await rig.batches()).at(-1);
    expect(measured).toMatchObject({ number: 4, why: 'measured', samples: [], settled: [], version: '' });
    expect(measured?.lessons.map(({ text, state, sinceBatch }) => [text, state, sinceBatch])).toEqual([
      [small, STATE_LEARNED, 3],
      [emoji, STATE_ACTIVE, 1],
    ]);
  });

  it('a version is asked once, and not again by the trainer that leads next', async () => {
    await rigWith();
    const asked: string[] = [];
    const progress = progressOf(() => 0.5, asked);
    const first = await rig.startTrainer('one', {}, { progress });
    await rig.correct(2, { hint: small });
    await untilServed(1);
    await rig.untilBatches(2);
    await rig.stopTrainer(first);
    await rig.startTrainer('two', {}, { progress });
    await rig.correct(2, { name: 'b', hint: small });
    await untilServed(2);
    await rig.untilBatches(4);
    expect(asked).toEqual([`backtalk-v1 ${small}`, `backtalk-v2 ${small}`]);
    expect((await rig.batches()).map(({ why }) => why)).toEqual(['full', 'measured', 'full', 'measured']);
  });

  it('the base says of a version’s own answers how much each lesson explains of them', async () => {
    await rigWith();
    const lastWordOf = (content: string) => fakePromptIds([{ role: 'user', content }]).at(-3) ?? 0;
    const answers = ['Well', 'minor', 'Smiling', 'Other'].map((word) => [word, lastWordOf(word)] as const);
    const wishes = [
      ['minor', [small]],
      ['Smiling', [emoji]],
      ['Other', ['In French.', 'From history.', 'At most five words.', 'As a poem.']],
    ] as const;
    const asks = (ids: readonly number[]) =>
      wishes.find(([, said]) => said.some((wish) => ids.includes(lastWordOf(wish))))?.[0] ?? 'Well';
    // The version smiles at both turns, and never writes small.
    rig.engine.settings.continues = (ids, model) => (model === 'fake' ? asks(ids) : 'Smiling');
    rig.engine.settings.odds = (ids) => {
      const word = answers.find(([, id]) => ids.includes(id))?.[0];
      return word === undefined || word === asks(ids) ? 0 : -20;
    };
    await rig.load('backtalk-v1');
    await rig.startTrainer('one', {}, { effects: { among: () => Promise.resolve(undefined) } });
    await rig.correct(1, { name: 'a', hint: small });
    await rig.correct(1, { name: 'b', hint: emoji });
    await untilServed(1);
    const [, measured] = await rig.untilBatches(2);
    const found = measured?.lessons.map(({ text, measures: [one] }) => [
      text,
      one?.turns,
      one === undefined ? '' : lessonProgress({ measures: [one] })?.toFixed(1),
      one?.hidden,
    ]);
    // This base heeds the first alone where it is shown both.
    expect(found).toEqual([
      [small, 2, '0.0', false],
      [emoji, 2, '1.0', true],
    ]);
  });

  it('lessons stay as they are where no engine has the version, and learning goes on', async () => {
    await rigWith();
    await rig.load('backtalk-v9');
    await rig.startTrainer('one', {}, { effects: { among: () => Promise.resolve(undefined) } });
    for (const n of [1, 2]) {
      await rig.correct(2, { name: `batch${n}x` });
      await untilServed(n);
    }
    const batches = await rig.batches();
    expect(batches.map(({ why }) => why)).toEqual(['full', 'full']);
    expect(batches[1]?.lessons).toMatchObject([{ state: STATE_ACTIVE, measures: [], steps: 4 }]);
    expect(Object.keys(rig.engine.counts.byModel)).not.toContain('backtalk-v1');
  });

  it('a version is asked once, also where nothing can be said of it', async () => {
    await rigWith();
    const asked: string[] = [];
    const { of } = progressOf(() => 0, asked);
    const progress: typeof of = async (...given) => new Map([...(await of(...given))].slice(1));
    await rig.startTrainer('one', {}, { progress: { of: progress } });
    await rig.correct(2, { hint: small });
    await untilServed(1);
    await rig.correct(1, { name: 'b', hint: small });
    await rig.correct(1, { name: 'c', hint: small });
    await rig.untilVersions(2);
    expect(asked).toEqual([`backtalk-v1 ${small}`]);
  });
});

describe('a version whose lessons nobody could measure', () => {
  it('a version is asked again a minute later, since the engine may only have been away', async () => {
    await rigWith();
    const wish = 'Use small letters.';
    const asked: string[] = [];
    const { of } = progressOf(() => 0.8, asked);
    const progress: typeof of = async (...given) => (asked.length === 0 ? away(asked) : of(...given));
    let later = 0;
    const clock = { ...systemClock, now: () => systemClock.now() + later };
    await rig.startTrainer('one', {}, { progress: { of: progress }, clock });
    await rig.correct(2, { hint: wish });
    await untilServed(1);
    await until(() => asked.length === 1, { what: 'The try that is in vain' });
    later = 60_000;
    await rig.correct(1, { name: 'more', hint: wish });
    await rig.untilBatches(2);
    expect(asked).toEqual(['away', `backtalk-v1 ${wish}`]);
    expect((await rig.batches()).at(-1)).toMatchObject({ why: 'measured' });
  });
});

/** No engine gives scores. */
function away(asked: string[]): Promise<Measured> {
  asked.push('away');
  return Promise.resolve(new Map());
}

describe('what is said of lessons in so many words', () => {
  it('a lesson that is given is in the ledger at once, also while learning rests, and only once over restarts and repeats', async () => {
    await rigWith();
    await rig.pause(true);
    const first = await rig.startTrainer();
    const add = { id: 'change1', action: ACTION_ADD, lesson: 'lesson_given', user: 'user0', text: 'Use tables.' };
    await rig.changeLesson(add);
    await rig.changeLesson(add);
    const [taken] = await rig.untilBatches(1);
    expect(taken).toMatchObject({ why: 'lessons', samples: [], settled: [], version: '' });
    expect(taken?.lessons).toMatchObject([{ id: 'lesson_given', text: 'Use tables.', state: STATE_ACTIVE }]);
    expect(taken?.lessonsThrough).toBeGreaterThan(0);
    await rig.stopTrainer(first);
    await rig.pause(false);
    await rig.startTrainer('two');
    await rig.correct(2, { hint: 'It is Oslo.', stands: false });
    await untilServed(1);
    expect(rig.shown().map(([, hints]) => hints)).toEqual([
      ['Use tables.', 'It is Oslo.'],
      ['Use tables.', 'It is Oslo.'],
    ]);
    expect((await rig.batches()).map(({ why, lessonsThrough }) => [why, lessonsThrough])).toEqual([
      ['lessons', taken?.lessonsThrough],
      ['full', taken?.lessonsThrough],
    ]);
  });

  it('a change that was stored while no trainer ran is taken in before anything else, and a retired lesson is shown no more', async () => {
    await rigWith();
    const given = { lesson: 'lesson_given', user: 'user0' };
    await rig.changeLesson({ ...given, id: 'change1', action: ACTION_ADD, text: 'Use tables.' });
    await rig.changeLesson({ ...given, id: 'change2', action: ACTION_RETIRE, giver: 'user0' });
    await rig.correct(2, { hint: 'It is Oslo.', stands: false });
    const trainer = await rig.startTrainer();
    await rig.untilVersions(1);
    const [taken, trained] = await rig.batches();
    expect(taken).toMatchObject({ why: 'lessons', lessons: [{ state: STATE_RETIRED, endedBy: 'person' }] });
    expect(trained).toMatchObject({ why: 'full', number: 2 });
    expect(rig.shown().map(([, hints]) => hints)).toEqual([['It is Oslo.'], ['It is Oslo.']]);
    await until(async () => (await rig.metric(trainer, /lessons_known\{.*state="retired"/)) === 1);
  });

  it('words that waited for a batch do not bring back what was retired meanwhile, also where another trainer goes on', async () => {
    await rigWith();
    const first = await rig.startTrainer();
    await rig.changeLesson({ id: 'change1', action: ACTION_ADD, lesson: 'given', user: 'user0', text: 'Use tables.' });
    await rig.untilBatches(1);
    await rig.correct(1, { name: 'waits', hint: 'Always use tables.' });
    await rig.changeLesson({ id: 'change2', action: ACTION_RETIRE, lesson: 'given', user: 'user0', giver: 'user0' });
    await rig.untilBatches(2);
    await rig.stopTrainer(first);
    await rig.startTrainer('two');
    await rig.correct(1, { hint: 'It is Oslo.', stands: false });
    await rig.untilVersions(1);
    const lessons = (await rig.batches()).at(-1)?.lessons;
    expect(lessons).toMatchObject([{ id: 'given', state: STATE_RETIRED, hints: 1 }, { text: 'It is Oslo.' }]);
  });

  it('one of the wordings that do the same to the base is shown to teachers, and covers the other in the batch', async () => {
    await rigWith();
    await rig.startTrainer('one', {}, { effects: byLastWord });
    const [plain, long, other] = [
      'Always speak as sailors do.',
      'From now on whisper every kind word as a poet would do.',
      'Never be rude.',
    ];
    await rig.correct(2, { name: 'a', hint: plain });
    await untilServed(1);
    await rig.correct(1, { name: 'b', hint: long });
    await rig.correct(1, { name: 'c', hint: other });
    await untilServed(2);
    const lessons = (await rig.batches())[1]?.lessons ?? [];
    expect(lessons.map(({ text, coveredBy }) => [text, coveredBy])).toEqual([
      [plain, ''],
      [long, lessons[0]?.id],
      [other, ''],
    ]);
    expect(rig.shown().map(([, hints]) => hints)).toEqual([
      [plain, other],
      [plain, other],
    ]);
  });

  it('words that only judge are no lesson, however many sessions bring them', async () => {
    await rigWith();
    await rig.startTrainer();
    const judged = { bare: true };
    await rig.correct(2, { name: 'a', hint: 'Wrong again.', stands: false, session: 's1', judged });
    await untilServed(1);
    await rig.correct(1, { name: 'b', hint: 'Wrong again.', stands: false, session: 's2', judged });
    await rig.correct(1, { name: 'c', hint: 'Use tables.', stands: false, session: 's2' });
    await untilServed(2);
    const batches = await rig.batches();
    expect(batches.flatMap(({ lessons }) => lessons.map(({ text }) => text))).toEqual(['Use tables.']);
    expect(batches[0]?.samples).toMatchObject([{ hindsight: 'Wrong again.' }, { hindsight: 'Wrong again.' }]);
  });

  it('a wish that a second session brings in words that do the same is a lesson', async () => {
    await rigWith();
    await rig.startTrainer('one', {}, { effects: byLastWord });
    await rig.correct(2, { name: 'a', hint: 'Speak as sailors do.', stands: false, session: 's1' });
    await untilServed(1);
    const again = 'Whisper every kind word as a poet would do.';
    await rig.correct(2, { name: 'b', hint: again, stands: false, session: 's2' });
    await untilServed(2);
    const lessons = (await rig.batches())[1]?.lessons ?? [];
    expect(lessons.map(({ text, state, coveredBy }) => [text, state, coveredBy])).toEqual([
      ['Speak as sailors do.', STATE_HEARD, lessons[1]?.id],
      [again, STATE_ACTIVE, ''],
    ]);
  });
});

/** Wishes that end in the same word do the same to the base. */
const byLastWord: NonNullable<TrainerOverrides['effects']> = {
  among: () => {
    const gain = (shown: string, told: string) => (shown.split(' ').at(-1) === told.split(' ').at(-1) ? 9 : 1);
    return Promise.resolve({ gain, byChance: () => 1, matter: () => 0, effect: () => 10 });
  },
};

/** As engines find it: so much of the way to the base that is shown a lesson. */
function progressOf(share: (text: string) => number, asked: string[] = []): NonNullable<TrainerOverrides['progress']> {
  return {
    of: (version, lessons) => {
      asked.push(...lessons.map(({ text }) => `${version} ${text}`));
      return Promise.resolve(
        new Map(
          lessons.map(({ id, text }) => [
            id,
            { turns: 4, questions: 0, hidden: false, askedAgain: [], chance: 0, told: 20, own: 20 * share(text) },
          ]),
        ),
      );
    },
  };
}
