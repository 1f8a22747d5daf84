import { startFakeEngine, type FakeEngine } from '@backtalk/dialects/testing';
import { endpointClient } from '@backtalk/cli';
import { until } from '@backtalk/kit/testing';
import { afterAll, beforeAll, beforeEach, expect, it } from 'vitest';
import { emptyCounts, talkOnce, type Talker } from './talk.js';
import type { Reaction } from './user/simulated-user.js';

let engine: FakeEngine;
/** The last message of every request. */
let heard: string[];

beforeAll(async () => {
  engine = await startFakeEngine({
    reply: (messages) => {
      heard.push(messages.at(-1)?.content ?? '');
      return 'An answer.';
    },
  });
});
beforeEach(() => {
  heard = [];
});
afterAll(async () => {
  await engine.stop();
});

async function session(repliesMax: number, ...reactions: readonly Reaction[]) {
  const counts = emptyCounts('backtalk-v0');
  const seen: number[] = [];
  const user: Talker = {
    question: () => 'Why?',
    react: async (_question, _answer, before) => {
      seen.push(before.length);
      return reactions[seen.length - 1] ?? { kind: 'correct', words: 'Once more.' };
    },
  };
  const client = endpointClient(`${engine.url}/v1`, 'none');
  await talkOnce({ client, model: engine.baseModel, user, maxTokens: 8, repliesMax }, counts);
  return { counts, seen };
}

it('a session ends after as many replies as it may have, each of which knows what was said before', async () => {
  const { counts, seen } = await session(3);
  expect(heard).toEqual(['Why?', 'Once more.', 'Once more.', 'Once more.']);
  expect(seen).toEqual([1, 3, 5]);
  expect(counts).toMatchObject({ sessions: 1, answers: 4, corrected: 3 });
});

it('a stop ends a session in the middle of an answer', async () => {
  const silent = await startFakeEngine({ faults: { hang: true } });
  const stop = new AbortController();
  const counts = emptyCounts('backtalk-v0');
  const user: Talker = { question: () => 'Why?', react: async () => ({ kind: 'leave' }) };
  const client = endpointClient(`${silent.url}/v1`, 'none');
  const own = { client, model: silent.baseModel, user, maxTokens: 8, repliesMax: 1, signal: stop.signal };
  const talking = talkOnce(own, counts);
  await until(() => silent.counts.requests > 0);
  stop.abort();
  await expect(talking).rejects.toThrow('aborted');
  expect(counts.sessions).toBe(0);
  await silent.stop();
});

it('a session ends with the answer to thanks, and without one where its user leaves', async () => {
  const thanks: Reaction = { kind: 'praise', words: 'Thanks.' };
  expect((await session(3, { kind: 'correct', words: 'No.' }, thanks)).counts).toMatchObject({
    answers: 3,
    praised: 1,
  });
  expect(heard).toEqual(['Why?', 'No.', 'Thanks.']);
  expect((await session(3, { kind: 'leave' })).counts).toMatchObject({ sessions: 1, answers: 1, left: 1 });
});
