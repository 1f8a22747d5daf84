import { until } from '@backtalk/kit/testing';
import { WeightsStaged_Stage } from '@backtalk/proto/facts';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { LogBook } from './fact-log.js';
import { startTestMachine, type TestMachine } from './machine.js';
import { corrections } from './small-talk.js';
import { ask, type Heard, type Message } from './talk.js';

let machine: TestMachine;
let book: LogBook;

beforeAll(async () => {
  machine = await startTestMachine({
    engine: 'stand-in',
    training: 'stand-in',
    environment: { trainer: { BACKTALK_RECIPE_SET: 'effective=4,effectiveMin=4' } },
  });
  book = await LogBook.open(machine);
});

afterAll(async () => {
  await book?.close();
  await machine?.stop();
});

/** A question, its answer, and a correction; gives the turn that was corrected. */
async function correct(number: number): Promise<Heard> {
  const messages: Message[] = [{ role: 'user', content: `How do tides work in bay number ${String(number)}?` }];
  const first = await ask(machine.gateway, { messages });
  const words = corrections[number % corrections.length] ?? corrections[0];
  await ask(machine.gateway, {
    messages: [...messages, { role: 'assistant', content: first.text }, { role: 'user', content: words }],
  });
  return first;
}

it('corrections become a version that answers, and every hop from answer to votes can be read back', async () => {
  const corrected = [];
  for (let number = 0; number < 4; number += 1) corrected.push(await correct(number));
  expect(corrected.map(({ weights }) => weights)).toEqual(Array(4).fill('backtalk-v0'));
  const answer = await until(
    async () => {
      const heard = await ask(machine.gateway, { messages: [{ role: 'user', content: 'And who answers now?' }] });
      return heard.weights === 'backtalk-v1' && heard;
    },
    { what: 'backtalk-v1 answers', timeoutMs: 60_000, everyMs: 100 },
  );
  const log = await book.read();
  const version = log.trained.find(({ message }) => message.version === answer.weights)?.message;
  const batch = log.batches.find(({ message }) => message.number === version?.batch)?.message;
  expect(batch).toMatchObject({ version: 'backtalk-v1', parent: 'backtalk-v0' });
  expect(
    batch?.samples
      .filter(({ effective }) => effective)
      .map(({ turn }) => turn)
      .sort(),
  ).toEqual(corrected.map(({ turn }) => turn).sort());
  const sample = batch?.samples[0];
  const completed = await book.reader.last('turnCompleted', { turn: sample?.turn ?? '' });
  const continued = await book.reader.last('turnContinued', { turn: sample?.turn ?? '' });
  const judged = await book.reader.last('turnJudged', { turn: sample?.turn ?? '' });
  expect(completed?.message).toMatchObject({ weightsVersion: 'backtalk-v0', trainable: true });
  expect(continued?.message.nextState.map(({ text }) => text)).toHaveLength(1);
  expect(corrections).toContain(continued?.message.nextState[0]?.text);
  expect(judged?.message).toMatchObject({ verdict: -1, revision: sample?.revision });
  expect(judged?.message.votes.map(({ valid, verdict }) => valid && verdict)).toEqual([-1, -1, -1]);
  expect(judged?.message.hint).toMatch(/one short sentence/i);
  const staged = log.staged.filter(({ message }) => message.version === 'backtalk-v1');
  expect(staged.map(({ message }) => message.stage)).toEqual([
    WeightsStaged_Stage.STAGE_CANDIDATE,
    WeightsStaged_Stage.STAGE_STABLE,
  ]);
  expect(log.routes).toMatchObject({ stable: 'backtalk-v1', fence: staged[1]?.sequence });
});
