import { existsSync } from 'node:fs';
import { checkTemplate } from '@backtalk/deploy';
import { freePort, TemporaryDirectory, until } from '@backtalk/kit/testing';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { LogBook } from './fact-log.js';
import { settleLearning } from './learning-switch.js';
import { comparableTokens, logprobGap } from './logprob-gap.js';
import { root, startTestMachine, type TestMachine } from './machine.js';
import { MadeModel } from './made-model.js';
import { ask, type Message } from './talk.js';
import { TrainingTap } from './training-tap.js';
import { holdExports } from '../observability/exports.js';
import { runCommand, valuesIn } from '../operations/run-command.js';

// A model of Qwen3's shape with random weights in 4 bits: what it says is noise, and the whole loop has to carry it all the same.
const made = new MadeModel('qwen3', 4096);

const rain = {
  type: 'function',
  function: {
    name: 'rain',
    description: 'Whether it rains.',
    parameters: { type: 'object', properties: { city: { type: 'string' } } },
  },
};
const call = { id: 'call_1', type: 'function', function: { name: 'rain', arguments: '{"city":"Rome"}' } };
const looked: readonly Message[] = [
  { role: 'assistant', content: null, reasoning_content: 'The tool knows.', tool_calls: [call] },
  { role: 'tool', content: 'no', tool_call_id: 'call_1' },
];

const tap = new TrainingTap();
const directory = new TemporaryDirectory('replay');
let machine: TestMachine;
let book: LogBook;
const held = new Map<string, string | undefined>();

beforeAll(async () => {
  expect(await checkTemplate(root, made.folder)).toMatch(/^calls as hermes/);
  const tapPort = await freePort();
  await tap.start(tapPort);
  machine = await startTestMachine({
    engine: 'builtin',
    training: 'real',
    base: made.base(),
    chosen: { quantization: 'nf4' },
    adapt: (spec) => {
      held.set(spec.name, spec.env['BACKTALK_ENGINE_QUANTIZATION'] ?? spec.env['BACKTALK_QUANTIZATION']);
      return spec;
    },
    environment: {
      trainer: {
        BACKTALK_TRAINING_WORKER: `127.0.0.1:${String(tapPort)}`,
        BACKTALK_RECIPE_SET: 'sampleTokensMax=4096,effective=2,effectiveMin=2,anchorsPerEffective=0,answerTokensMax=16',
      },
    },
  });
  tap.lead(`127.0.0.1:${String(machine.ports.grpc.trainingWorker)}`, machine.wire);
  book = await LogBook.open(machine);
});

afterAll(async () => {
  await book?.close();
  await machine?.stop();
  await tap.stop();
  made.remove();
  directory.remove();
});

/** A question, a tool's answer, the model's words on it, and a correction of those. */
async function correct(number: number): Promise<void> {
  const tools = [rain];
  const asked: Message[] = [{ role: 'user', content: `Does it rain in bay number ${String(number)}?` }, ...looked];
  const first = await ask(machine.gateway, { messages: asked, tools, maxTokens: 24 });
  const words = 'No, that is wrong. Answer in one short sentence.';
  const messages: Message[] = [...asked, { role: 'assistant', content: first.text }, { role: 'user', content: words }];
  await ask(machine.gateway, { messages, tools, maxTokens: 24 });
}

it('a made model of another architecture, in four bits, is taught with tools and thoughts in its prompts, and its version answers', async () => {
  expect([held.get('engine'), held.get('training-worker')]).toEqual(['nf4', 'nf4']);
  await correct(1);
  await correct(2);
  const swapped = async () => (await book.stable()) !== 'backtalk-v0';
  await until(swapped, { what: 'The first version answers', timeoutMs: 180_000, everyMs: 250 });
  await settleLearning(machine, book, 60_000);
  const question: Message[] = [{ role: 'user', content: 'And who answers now?' }, ...looked];
  const answer = await ask(machine.gateway, { messages: question, tools: [rain], maxTokens: 24 });
  expect(answer.weights).toBe('backtalk-v1');
  const fact = await book.reader.last('turnCompleted', { turn: answer.turn });
  expect(fact?.message.promptIds).toEqual(await made.rendered(machine, { messages: question, tools: [rain] }));
  const [request] = tap.requests;
  // Every sample has a teacher: its prompt, rendered again with the hint in it.
  expect(request?.samples.map(({ teacherPromptIds }) => teacherPromptIds.length > 0)).toEqual([true, true]);
  // Random weights may end an answer at its first token: asked until there is enough to compare.
  let log = await book.read();
  for (let asked = 0; asked < 40 && comparableTokens(log) < 16; asked += 1) {
    await ask(machine.gateway, { messages: question, tools: [rain], maxTokens: 24 });
    log = await book.read();
  }
  const { tokens, meanAbs } = await logprobGap(machine, tap.worker, log, 16);
  expect(tokens).toBeGreaterThanOrEqual(16);
  expect(meanAbs).toBeLessThanOrEqual(1e-4);
});

interface Replayed {
  readonly state: string;
  readonly judges?: readonly string[];
  readonly versions: readonly {
    readonly version: string;
    readonly then: object;
    readonly now: object;
    readonly rejudged?: object;
  }[];
}

const replay = async (...words: readonly string[]) => {
  const all = ['--data', machine.folder, '--json', 'replay', '--from', 'backtalk-v1', ...words];
  const ran = await runCommand(all, { folder: directory.path });
  return { ...ran, value: valuesIn<Replayed>(ran)[0] };
};

it('a replay of its versions is the same byte for byte, and one with another recipe is saved and answers no one', async () => {
  const stable = await book.stable();
  const same = await replay();
  expect(same.stderr).toBe('');
  expect(same.value).toMatchObject({ state: 'equal', versions: [{ version: 'backtalk-v1' }] });
  const folder = directory.join('weaker');
  const weaker = await replay('--recipe', 'learningRate=1e-5,stepBoundNats=1', '--save', folder);
  expect(weaker.value?.state).toBe('different');
  const [{ then, now } = { then: {}, now: {} }] = weaker.value?.versions ?? [];
  expect(Reflect.get(now, 'kl_step')).toBeLessThan(Number(Reflect.get(then, 'kl_step')));
  expect(existsSync(`${folder}/adapter_model.safetensors`)).toBe(true);
  expect(await book.stable()).toBe(stable);
});

it('a replay with the judge of now is the same byte for byte where that judge says what it said then', async () => {
  const { value } = await replay('--judge', '--to', 'backtalk-v1');
  expect(value).toMatchObject({ state: 'equal', versions: [{ version: 'backtalk-v1' }] });
  expect(value?.versions[0]?.rejudged).toEqual({ turns: 2, verdicts: 0, hints: 0, refused: 0 });
  expect(value?.judges).toHaveLength(1);
});

holdExports(() => machine);
