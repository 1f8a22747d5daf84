import { writeFileSync } from 'node:fs';
import { TemporaryDirectory, until } from '@backtalk/kit/testing';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { LogBook } from './fact-log.js';
import { startTestMachine, type TestMachine } from './machine.js';
import { runCommand, valuesIn } from '../operations/run-command.js';
import { ask, type Message } from './talk.js';

// An environment lets an agent try a task four times, two steps each, and says how each attempt went.
let machine: TestMachine;
let book: LogBook;
const directory = new TemporaryDirectory('rollout');

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
  directory.remove();
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

/** Asks twice, and is pleased with every other attempt. */
const environment = `
const lines = require('node:readline').createInterface({ input: process.stdin });
let attempt, answers = 0;
lines.on('line', (line) => {
  attempt ??= JSON.parse(line).attempt;
  const said = answers++ === 2 ? { score: attempt % 2 } : { messages: [{ role: 'user', content: 'Step ' + answers }] };
  console.log(JSON.stringify(said));
});
`;

it('the command that runs environments gives the log groups of attempts with their outcomes, and steps are taken on them', async () => {
  writeFileSync(directory.join('environment.cjs'), environment);
  writeFileSync(directory.join('tasks.jsonl'), '"the tides"\n"the moon"\n');
  const before = (await book.read()).batches.length;
  const words = [
    'rollout',
    'tasks.jsonl',
    '--environment',
    'node environment.cjs',
    '--attempts',
    '4',
    '--at-once',
    '8',
  ];
  const ran = await runCommand(['--data', machine.folder, '--json', ...words], { folder: directory.path });
  expect({ status: ran.status, stderr: ran.stderr }).toEqual({ status: 0, stderr: '' });
  const groups = valuesIn<{ group?: string; attempts: { session: string; score: number; steps: number }[] }>(ran);
  const attempted = groups.flatMap(({ group, attempts }) => (group === undefined ? [] : attempts));
  expect(attempted.map(({ score, steps }) => [score, steps]).sort()).toEqual([
    ...Array<number[]>(4).fill([0, 2]),
    ...Array<number[]>(4).fill([1, 2]),
  ]);
  // Of both steps of all eight attempts, those that a batch took before its version made the others old.
  const rewarded = async () => {
    const batches = (await book.read()).batches.slice(before).map(({ message }) => message);
    const steps = batches.flatMap(({ samples }) => samples.filter(({ attempt }) => attempt !== undefined));
    return steps.length >= 3 && steps;
  };
  const steps = await until(rewarded, { what: 'Steps of attempts in a batch', timeoutMs: 120_000, everyMs: 200 });
  for (const { advantage } of steps) expect(Math.abs(advantage)).toBeCloseTo(1, 6);
});
