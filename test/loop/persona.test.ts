import { spawn } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { says, startScriptedModel, type ScriptedModel } from '../simulate/testing/scripted-model.js';
import { LogBook } from './fact-log.js';
import { root, startTestMachine, type TestMachine } from './machine.js';

const words = 'One short sentence, please.';
const key = 'sk-of-the-loop-0123456789';

let machine: TestMachine;
let book: LogBook;
let player: ScriptedModel;
let reader: ScriptedModel;

beforeAll(async () => {
  player = await startScriptedModel(
    'player',
    ({ messages }) =>
      messages.at(-1)?.content.includes(words) === true
        ? says({ satisfied: true, words: 'Thank you, that will do.' })
        : says({ satisfied: false, words }),
    key,
  );
  reader = await startScriptedModel('reader', () => says({ answers: true, score: 0.25 }));
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
  await player?.stop();
  await reader?.stop();
});

async function simulate(...words: readonly string[]) {
  const tool = join(root, 'test', 'dist', 'simulate', 'main.js');
  const child = spawn(process.execPath, [tool, '--data', machine.folder, '--json', ...words], { cwd: machine.folder });
  const status = new Promise((resolve) => child.once('exit', resolve));
  const [out, complaints] = await Promise.all([text(child.stdout), text(child.stderr)]);
  const values = out
    .split('\n')
    .filter(Boolean)
    .map((line) => JSON.parse(line) as Readonly<Record<string, unknown>>);
  return { status: await status, values, complaints };
}

it('a persona talks until a version is measured, its corrections are learned from, and its key is said nowhere', async () => {
  const file = join(machine.folder, 'key-of-player');
  writeFileSync(file, key, { mode: 0o600 });
  const models = ['--llm-url', player.url, '--llm-key-file', file, '--scorer-url', reader.url];
  const sizes = [
    '--sessions',
    '60',
    '--until-version',
    '1',
    '--questions',
    '3',
    '--max-tokens',
    '12',
    '--parallel',
    '2',
  ];
  const { status, values, complaints } = await simulate('--persona', 'student', ...models, ...sizes);
  expect({ status, complaints }).toMatchObject({
    status: 0,
    complaints: expect.stringContaining('plays the user') as string,
  });
  const rows = values.filter(({ event }) => event === 'measured');
  expect(rows.filter(({ kind }) => kind === 'comparison')).toHaveLength(4);
  const version = rows.find(({ name }) => name === 'backtalk-v1');
  expect(version).toMatchObject({ kind: 'version', scores: { obeys: 0.25, hit: 1, headline: 0.25 } });
  const done = values.find(({ event }) => event === 'done') as { counts: Record<string, number>; models: object };
  const { sessions = 0, answers, corrected, praised } = done.counts;
  // A task, a correction, thanks: the person leaves no session, and ends each of them content.
  expect([answers, corrected, praised]).toEqual([3 * sessions, sessions, sessions]);
  expect(done.models).toMatchObject({
    user: { replies: 2 * sessions, failed: 0 },
    scorer: { replies: 3 * rows.length },
  });
  const { batches, continued, judged } = await book.read();
  const learned = new Set(batches.flatMap(({ message }) => message.samples.map(({ turn }) => turn)));
  const corrections = continued.filter(
    ({ message: { turn, nextState } }) => learned.has(turn) && nextState[0]?.text === words,
  );
  const wrong = new Set(judged.filter(({ message }) => message.verdict === -1).map(({ message }) => message.turn));
  expect(corrections.length).toBeGreaterThan(0);
  expect(corrections.filter(({ message }) => !wrong.has(message.turn))).toEqual([]);
  expect([complaints, JSON.stringify(values), machine.logs()].join('\n')).not.toContain(key);
});

it('a user’s model that refuses the key ends the run before it begins, in one line', async () => {
  const { status, values, complaints } = await simulate('--persona', 'ta', '--llm-url', player.url, '--questions', '0');
  expect(status).toBe(1);
  expect(complaints).toBe(`--llm-url ${player.url} cannot play the user: it asks for a key (--llm-key-file FILE).\n`);
  expect(values).toEqual([{ error: { code: 'api_refused', message: complaints.trim() } }]);
});
