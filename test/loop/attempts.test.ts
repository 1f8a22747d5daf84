import { until } from '@backtalk/kit/testing';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { LogBook } from './fact-log.js';
import { startTestMachine, type TestMachine } from './machine.js';
import { ask, type Message } from './talk.js';

// An environment lets an agent try a task four times, two steps each, and says how each attempt went.
let machine: TestMachine;
let book: LogBook;

beforeAll(async () => {
  const recipe = 'method=binary,effective=3,effectiveMin=3';
  machine = await startTestMachine({
    engine: 'stand-in',
    training: 'stand-in',
    environment: { trainer: { BACKTALK_RECIPE_SET: recipe } },
  });
  book = await LogBook.open(machine);
});

afterAll(async () => {
  await book?.close();
  await machine?.stop();
});

interface Attempt {
  readonly name: string;
  readonly score: number;
  /** Of what the first step did, as the environment's field says. */
  readonly exitCode: number;
}

const attempts: readonly Attempt[] = [
  { name: 'a', score: 1, exitCode: 0 },
  { name: 'b', score: -1, exitCode: 1 },
  { name: 'c', score: -1, exitCode: 0 },
  { name: 'd', score: 1, exitCode: 1 },
];

/** The turns of an attempt, oldest first. */
async function attempt({ name, exitCode }: Attempt): Promise<string[]> {
  const headers = { 'X-Session-Id': name, 'X-Group-Id': 'the tides', 'X-Turn-Type': 'environment' };
  const messages: Message[] = [{ role: 'user', content: 'Find out when the tide is high, and say so.' }];
  const first = await ask(machine.gateway, { messages, headers });
  messages.push({ role: 'assistant', content: first.text });
  messages.push({ role: 'user', content: JSON.stringify({ exit_code: exitCode }) });
  const second = await ask(machine.gateway, { messages, headers });
  return [first.turn, second.turn];
}

async function end({ name, score }: Attempt): Promise<void> {
  const response = await fetch(`${machine.gateway}/v1/sessions/${name}/outcome`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ score, attempts: attempts.length }),
  });
  expect(response.status).toBe(200);
}

it('attempts are rewarded step by step, beside each other, whatever is killed between a step and its outcome', async () => {
  const turns = new Map<string, string[]>();
  for (const one of attempts) turns.set(one.name, await attempt(one));
  for (const [at, one] of attempts.entries()) {
    if (at === 1) for (const service of ['collector', 'judge', 'trainer']) machine.kill(service);
    await end(one);
  }
  const batches = await until(
    async () => {
      const closed = (await book.read()).batches.flatMap(({ message }) => message);
      return closed.flatMap(({ samples }) => samples).length === 6 && closed;
    },
    { what: 'All steps that teach in batches', timeoutMs: 120_000, everyMs: 200 },
  );
  const advantages = new Map(
    batches.flatMap(({ samples }) => samples).map(({ turn, advantage }) => [turn, Number(advantage.toFixed(6))]),
  );
  // The first step's rewards are 1 + 1, -1 - 1, -1 + 1 and 1 - 1: mean 0, deviation √2. Nothing followed the last: ±1.
  const first = attempts.map(({ name }) => advantages.get(turns.get(name)?.[0] ?? ''));
  const last = attempts.map(({ name }) => advantages.get(turns.get(name)?.[1] ?? ''));
  expect(first).toEqual([1.414214, -1.414214, undefined, undefined]);
  expect(last).toEqual([1, -1, -1, 1]);
});
