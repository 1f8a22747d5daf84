import type { CompletionRequest, EngineClient, ScoreItem, TokenizeRequest } from '@backtalk/dialects';
import { FakeClock } from '@backtalk/kit/testing';
import { beforeEach, describe, expect, it } from 'vitest';

import type { LessonToMeasure } from '../domain/lesson-progress.js';
import { trainerErrors } from '../errors.js';
import { MeasuredProgress } from './measured-progress.js';
import type { ServingEngine } from './serving-engines.js';

const options = { policy: 'backtalk', hintPlace: 'after', answerTokensMax: 48, batch: 1 };
const lesson = (id: string): LessonToMeasure => ({ id, text: `Wish ${id}.`, turns: [], fills: true });
const lessons = ['a', 'b', 'c', 'd', 'e'].map(lesson);

let clock: FakeClock;
/** Prompts of each request for answers, as text. */
let answered: string[][];
/** What is refused, where it stands in a prompt. */
let refused: string;
let scoredMs: number;

const idsOf = (text: string) => [...Buffer.from(text)];
const textOf = (ids: readonly number[]) => Buffer.from(ids).toString();

const client = {
  tokenize: ({ messages = [] }: TokenizeRequest) => Promise.resolve(idsOf(JSON.stringify(messages))),
  completions: ({ prompt, model }: CompletionRequest) => {
    const prompts = (prompt as readonly (readonly number[])[]).map(textOf);
    answered.push(prompts);
    if (refused !== '' && prompts.some((text) => text.includes(refused)))
      return Promise.reject(trainerErrors.rendererAway({ baseModel: model }));
    return Promise.resolve(prompts.map(() => ({ ids: idsOf(model) })));
  },
  score: async (items: readonly ScoreItem[]) => {
    await clock.advance(scoredMs);
    return items.map(({ answerIds }) => answerIds.map(() => -1));
  },
} as unknown as EngineClient;

const engines = {
  base: () => 'base',
  use: <T>(_base: string, _wanted: unknown, work: (some: readonly ServingEngine[]) => Promise<T>) =>
    work([{ url: 'http://engine', client }]),
};

const measured = async () => {
  const progress = new MeasuredProgress(engines, { source: () => Promise.resolve('missing') }, clock);
  return [...(await progress.of('backtalk-v1', lessons, options, new AbortController().signal)).keys()];
};

beforeEach(() => {
  [clock, answered, refused, scoredMs] = [new FakeClock(), [], '', 0];
});

describe('the progress of several lessons', () => {
  it('four lessons are answered together, and the version answers their common questions once', async () => {
    expect(await measured()).toEqual(['a', 'b', 'c', 'd', 'e']);
    // Of the base, shown other wishes and the four lessons; of the version, shown nothing; of the base, shown the fifth.
    expect(answered.map(({ length }) => length)).toEqual([4 + 4 * 4, 4, 4]);
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
    scoredMs = 20_000;
    expect(await measured()).toEqual(['a', 'b', 'c']);
    expect(answered).toHaveLength(2);
  });
});
