import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { PassThrough } from 'node:stream';
import {
  adapterRank,
  answersOk,
  Child,
  chosenModels,
  createTerminal,
  openDataFolder,
  readOptions,
} from '@backtalk/deploy';
import { inheritedEnvironment } from '@backtalk/kit';
import { freePort, TemporaryDirectory, until } from '@backtalk/kit/testing';
import { loadRecipe, recipePresets } from '@backtalk/trainer/recipe';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { LogBook } from './fact-log.js';
import { root, startTestMachine, type TestMachine } from './machine.js';
import { MadeModel } from './made-model.js';
import { ask, type Message } from './talk.js';

// An engine that this machine did not start, with a key of its own and a made model, stands for one on another host: it shares
// nothing with the machine but the folder of versions.
const made = new MadeModel('qwen3', 4096);
const directory = new TemporaryDirectory('elsewhere');
const folder = directory.join('data');
const keyFile = directory.join('key');
const key = 'key-of-an-engine-elsewhere';
const python = join(root, '.venv', 'bin', 'python');
const makingMs = 300_000;
const said: string[] = [];

let url: string;
let engine: Child;
let machine: TestMachine;
let book: LogBook;

function engineElsewhere(port: number): Child {
  const spec = {
    name: 'engine-elsewhere',
    command: python,
    args: ['-m', 'backtalk_worker.engine', '--port', String(port)],
    env: {
      ...inheritedEnvironment(),
      HF_HUB_OFFLINE: '1',
      BACKTALK_ENGINE_MODEL_DIR: made.folder,
      BACKTALK_ENGINE_MODEL_NAME: made.name,
      BACKTALK_ENGINE_KEY: key,
    },
    ready: () => answersOk(`${url}/health`),
    readyWithinMs: makingMs,
    stopSignal: 'SIGTERM' as const,
  };
  const silent = {
    started: () => undefined,
    died: () => undefined,
    ill: () => undefined,
    slow: () => undefined,
    back: () => undefined,
  };
  return new Child(spec, directory.join('engine.log'), silent);
}

beforeAll(async () => {
  writeFileSync(keyFile, key, { mode: 0o600 });
  const port = await freePort();
  url = `http://127.0.0.1:${String(port)}`;
  engine = engineElsewhere(port);
  await engine.start();
  const out = new PassThrough();
  out.on('data', (chunk: Buffer) => said.push(chunk.toString()));
  const flags = ['--engine', `${url}/v1`, '--engine-key-file', keyFile, '--model', made.folder, '--device', 'cpu'];
  const { base, ...chosen } = await chosenModels({
    root,
    options: readOptions([...flags, '--data', folder], root),
    data: openDataFolder(folder),
    terminal: createTerminal(out),
    signal: AbortSignal.timeout(makingMs),
  });
  machine = await startTestMachine({
    engine: 'builtin',
    training: 'real',
    folder,
    chosen,
    ...(base === undefined ? {} : { base }),
    environment: {
      trainer: {
        BACKTALK_RECIPE_SET: 'sampleTokensMax=4096,effective=2,effectiveMin=2,anchorsPerEffective=0,answerTokensMax=16',
      },
    },
  });
  book = await LogBook.open(machine);
});

afterAll(async () => {
  await book?.close();
  await machine?.stop();
  await engine?.stop(10_000);
  made.remove();
  directory.remove();
});

it('an engine elsewhere answers with its key, is taught, and serves the version that was learned', async () => {
  expect(machine.specs.has('engine')).toBe(false);
  expect(said.join('')).toContain(`engine: ${url}/v1, which speaks as vLLM (--engine; key of ${keyFile}; context 4096`);
  for (const number of [1, 2]) {
    const question: Message = { role: 'user', content: `Does it rain in bay number ${String(number)}?` };
    const first = await ask(machine.gateway, { messages: [question], maxTokens: 24 });
    expect(first.weights).toBe('backtalk-v0');
    const words: Message = { role: 'user', content: 'No, that is wrong. Answer in one short sentence.' };
    const messages: Message[] = [question, { role: 'assistant', content: first.text }, words];
    await ask(machine.gateway, { messages, maxTokens: 24 });
  }
  const swapped = async () => (await book.stable()) !== 'backtalk-v0';
  await until(swapped, { what: 'The first version answers', timeoutMs: 180_000, everyMs: 250 });
  const question: Message = { role: 'user', content: 'And who answers now?' };
  const answer = await ask(machine.gateway, { messages: [question], maxTokens: 24 });
  expect(answer.weights).toBe('backtalk-v1');
  const fact = await book.reader.last('turnCompleted', { turn: answer.turn });
  expect(fact?.message).toMatchObject({ engine: url, trainable: true });
  expect(readFileSync(machine.data.connection, 'utf8')).not.toContain(key);
});

it.each(Object.keys(recipePresets))('engines are tried with the rank of the recipe %s', (recipe) => {
  const rank = adapterRank({ environment: { BACKTALK_RECIPE: recipe } });
  expect(loadRecipe(recipe, '')).toMatchObject({ recipe: { loraRank: rank } });
});
