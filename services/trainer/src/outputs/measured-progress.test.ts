import type { CompletionRequest, EngineClient, ScoreItem, TokenizeRequest } from '@backtalk/dialects';
import { FakeClock } from '@backtalk/kit/testing';
import { TurnCompleted, TurnOpened } from '@backtalk/proto/facts';
import { beforeEach, describe, expect, it } from 'vitest';

import type { LessonToMeasure } from '../domain/lesson-progress.js';
import { trainerErrors } from '../errors.js';
import { MeasuredProgress } from './measured-progress.js';
import type { ServingEngine } from './serving-engines.js';
import type { SourceLog } from './source-log.js';

const options = { policy: 'backtalk', hintPlace: 'after', answerTokensMax: 48, batch: 1 };
const textOfLesson = (id: string) => `Wish ${id}.`;
const lesson = (id: string, others: readonly string[] = []): LessonToMeasure => {
  const [text, untold] = [textOfLesson(id), others.map(textOfLesson)];
  return { id, text, shown: () => ({ told: [...untold, text], untold }), turns: [], corrected: new Set(), fills: true };
};
const lessons = ['a', 'b', 'c', 'd', 'e'].map((id) => lesson(id));

let clock: FakeClock;
/** Prompts of each request for answers, as text. */
let answered: string[][];
/** What is refused, where it stands in a prompt. */
let refused: string;
let scoredMs: number;
/** Of an answer after a prompt. What the base answers repeats its prompt. */
let nats: (prompt: string, answer: string) => number;

const idsOf = (text: string) => [...Buffer.from(text)];
const textOf = (ids: readonly number[]) => Buffer.from(ids).toString();

const client = {
  tokenize: ({ messages = [] }: TokenizeRequest) => Promise.resolve(idsOf(JSON.stringify(messages))),
  completions: ({ prompt, model }: CompletionRequest) => {
    const prompts = (prompt as readonly (readonly number[])[]).map(textOf);
    answered.push(prompts);
    if (refused !== '' && prompts.some((text) => text.includes(refused)))
      return Promise.reject(trainerErrors.rendererAway({ baseModel: model }));
    const says = (text: string) => (model === 'base' ? text : 'own');
    return Promise.resolve(
      prompts.map((text) => ({ ids: idsOf(says(text)), text: ` ${says(text)}`, finishReason: 'length' })),
    );
  },
  score: async (items: readonly ScoreItem[]) => {
    await clock.advance(scoredMs);
    return items.map(({ promptIds, answerIds }) => [nats(textOf(promptIds), textOf(answerIds))]);
  },
} as unknown as EngineClient;

const engines = {
  base: () => 'base',
  use: <T>(_base: string, _wanted: unknown, work: (some: readonly ServingEngine[]) => Promise<T>) =>
    work([{ url: 'http://engine', client }]),
};

/** Of each turn the question is its name. */
const turnsOf: Pick<SourceLog, 'source'> = {
  source: ({ turn }) => {
    if (turn === 'gone') return Promise.resolve('missing');
    const opened = TurnOpened.fromPartial({ policy: 'backtalk', consent: { train: true } });
    const completed = TurnCompleted.fromPartial({ promptIds: idsOf(turn), text: `${'x'.repeat(500)}of ${turn}` });
    const messages = [
      { role: 'user', content: turn },
      { role: 'user', content: 'A note.' },
    ];
    const facts = { opened, completed, continued: undefined, continuedMs: undefined };
    return Promise.resolve({ facts, messages, tools: [], templateArguments: {}, humanMessage: 0 });
  },
};

const measures = (asked: readonly LessonToMeasure[] = lessons) => {
  const progress = new MeasuredProgress(engines, turnsOf, clock);
  return progress.of('backtalk-v1', asked, options, new AbortController().signal);
};
const measured = async () => [...(await measures()).keys()];

beforeEach(() => {
  [clock, answered, refused, scoredMs, nats] = [new FakeClock(), [], '', 0, () => -1];
});

describe('the progress of several lessons', () => {
  it('no call asks for more than eight answers, and the version answers the lessons’ common questions once', async () => {
    expect(await measured()).toEqual(['a', 'b', 'c', 'd', 'e']);
    // Of the version, shown nothing; of the base, shown another wish and each lesson.
    expect(answered.map(({ length }) => length)).toEqual([4, 8, 8, 8, 8, 8]);
  });

  it('a lesson that no engine answers keeps no other from being measured', async () => {
    refused = 'Wish b.';
    expect(await measured()).toEqual(['a', 'c', 'd', 'e']);
  });

  it('a failure of all of them is told, since the engine may only have been away', async () => {
    refused = 'role';
    await expect(measured()).rejects.toMatchObject({ code: 'renderer_away' });
  });

  it('what was measured when the time is over is kept, and nothing more is begun', async () => {
    scoredMs = 10_000;
    expect(await measured()).toEqual(['a', 'b', 'c', 'd', 'e']);
    scoredMs = 20_000;
    expect(await measured()).toEqual(['a', 'b', 'c']);
  });

  it('a lesson is measured beside the others that its person’s teachers are shown', async () => {
    // The version writes small and ends with a smile; to the base that is shown nothing, the one hides the other.
    nats = (prompt, answer) => {
      const [isSmall, smiles] =
        answer === 'own' ? [true, true] : [answer.includes('Wish s.'), answer.includes('Wish e.')];
      const odd = (isSmall && !prompt.includes('Wish s.') ? 30 : 0) + (smiles && !prompt.includes('Wish e.') ? 10 : 0);
      return answer === 'own' && !prompt.includes('Wish s.') ? -30 : -odd;
    };
    const found = await measures([lesson('e', ['s'])]);
    expect(found.get('e')).toMatchObject({ chance: 0, told: 10, own: 10 });
    expect(await measures([lesson('e')]).then((alone) => alone.get('e')?.own)).toBe(0);
  });

  it('what was corrected for a lesson’s sake is told beside what the version answers to it now, and no other turn', async () => {
    const turnsOfOne = (...names: readonly string[]) => names.map((turn) => ({ turn, tenant: 't', user: 'a' }));
    const asked = { ...lesson('a', ['s']), turns: turnsOfOne('t1', 'gone', 'other') };
    const found = await measures([{ ...asked, corrected: new Set(['t1', 'gone']) }, lesson('b')]);
    const [told, ...more] = found.get('a')?.askedAgain ?? [];
    expect(told).toMatchObject({ question: 't1', after: 'own …' });
    expect(told?.before).toMatch(/^x+ \[…\] x+of t1$/u);
    expect(told?.before.length).toBeLessThanOrEqual(400);
    expect([more, found.get('b')?.askedAgain]).toEqual([[], []]);
    const four = ['t1', 't2', 't3', 't4'];
    const many = await measures([{ ...asked, turns: turnsOfOne(...four), corrected: new Set(four) }]);
    expect(many.get('a')?.askedAgain.map(({ question }) => question)).toEqual(['t1', 't2']);
  });

  it('a lesson that does nothing, alone either, is not hidden by the others', async () => {
    nats = () => 0;
    const found = await measures([lesson('e', ['s'])]);
    expect(found.get('e')).toMatchObject({ chance: 0, told: 0, hidden: false });
  });

  it('a lesson that the others leave nothing of is measured alone at once, also where time is over then', async () => {
    nats = (prompt, answer) =>
      answer.includes('Wish e.') && !prompt.includes('Wish e.') && !prompt.includes('Wish s.') ? -10 : 0;
    scoredMs = 30_000;
    const found = await measures([lesson('e', ['s']), lesson('s')]);
    expect(found.get('e')).toMatchObject({ chance: 0, told: 10, turns: 4, hidden: true });
    expect(found.has('s')).toBe(false);
    scoredMs = 0;
    expect((await measures([lesson('s')])).get('s')?.hidden).toBe(false);
  });
});
