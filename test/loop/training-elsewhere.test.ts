import { join } from 'node:path';
import { givenUpBy } from '@backtalk/kit';
import { freePort, pythonEnvironment, ServerProcess, TemporaryDirectory, until } from '@backtalk/kit/testing';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { LogBook } from './fact-log.js';
import { root, startTestMachine, type TestMachine } from './machine.js';
import { MadeModel } from './made-model.js';
import { ask, type Message } from './talk.js';
import { runCommand, valuesIn } from '../operations/run-command.js';

// Nothing of the system computes a gradient here: a stand-in for a service with Tinker's API does, of the same base.
const made = new MadeModel('llama', 1024);
const directory = new TemporaryDirectory('training-elsewhere');
/** Of the preset `remote`. */
const alpha = '32';
let service: ServerProcess;
let machine: TestMachine;
let book: LogBook;

beforeAll(async () => {
  const port = String(await freePort());
  const url = `http://127.0.0.1:${port}`;
  service = new ServerProcess({
    program: join(pythonEnvironment(), 'bin', 'python'),
    arguments: [join(root, 'services', 'worker', 'tests', 'training', 'tinker_server.py'), made.folder, port, alpha],
    ready: async () => (await fetch(`${url}/api/v1/get_server_capabilities`)).status === 401,
  });
  machine = await startTestMachine({
    engine: 'builtin',
    training: 'real',
    base: made.base(),
    environment: {
      gateway: { BACKTALK_TEMPERATURE: '1' },
      trainer: {
        BACKTALK_TRAINING_BACKEND: 'tinker',
        BACKTALK_RECIPE: 'remote',
        BACKTALK_RECIPE_SET: 'sampleTokensMax=1024,effective=2,effectiveMin=2,anchorsPerEffective=0,answerTokensMax=16',
      },
      'training-worker': {
        BACKTALK_TRAINING_BACKEND: 'tinker',
        BACKTALK_TINKER_URL: url,
        BACKTALK_TINKER_KEY: 'tml-of-the-test',
        // The SDK itself asks a service that is away for a minute.
        BACKTALK_TINKER_CALL_SECONDS: '20',
      },
    },
  });
  book = await LogBook.open(machine);
});

afterAll(async () => {
  await book?.close();
  await machine?.stop();
  await service.kill();
  made.remove();
  directory.remove();
});

async function correct(number: number): Promise<void> {
  const asked: Message[] = [{ role: 'user', content: `Does it rain in bay number ${String(number)}?` }];
  const first = await ask(machine.gateway, { messages: asked, maxTokens: 24 });
  const words = 'No, that is wrong. Answer in one short sentence.';
  const messages: Message[] = [...asked, { role: 'assistant', content: first.text }, { role: 'user', content: words }];
  await ask(machine.gateway, { messages, maxTokens: 24 });
}

/** What `status` says of the training worker. */
async function said(): Promise<string | undefined> {
  const ran = await runCommand(['--data', machine.folder, '--json', 'status'], { folder: directory.path });
  const parts = valuesIn<{ parts: { part: string; why: string }[] }>(ran)[0]?.parts;
  return parts?.find(({ part }) => part === 'trainingWorker')?.why;
}

const answersWith = (version: string) => async () => (await book.stable()) === version;
const waiting = { timeoutMs: 180_000, everyMs: 250 };

it('steps wait for a training service that is away, and status says so; it comes, and what it trains answers here', async () => {
  await correct(1);
  await correct(2);
  const inVain = async () => (await said())?.includes('service_unavailable');
  await until(inVain, { ...waiting, everyMs: 2_000, what: 'A step in vain' });
  await service.start();
  await until(answersWith('backtalk-v1'), { ...waiting, what: 'The first version answers' });
  expect(await said()).toBe('');
  // The next begins with what stayed at the service.
  await correct(3);
  await correct(4);
  await until(answersWith('backtalk-v2'), { ...waiting, what: 'The second version answers' });
  const { batches, trained, deadLetters } = await book.read();
  expect(batches.filter(({ message }) => givenUpBy.has(message.why))).toEqual([]);
  expect(trained.map(({ message }) => message.version)).toEqual(['backtalk-v1', 'backtalk-v2']);
  expect(deadLetters).toBe(0);
});
