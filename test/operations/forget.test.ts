// `npx backtalk forget`, on a machine that learned from two people: nothing that one of them said is left on its disk, the version from before
// answers, what the other said is all there, and services that start anew go on from it.
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { TemporaryDirectory, until } from '@backtalk/kit/testing';
import { WeightsStaged_Stage } from '@backtalk/proto/facts';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { startCrowd } from '../loop/crowd.js';
import { LogBook } from '../loop/fact-log.js';
import { settleLearning } from '../loop/learning-switch.js';
import { startTestMachine, type TestMachine } from '../loop/machine.js';
import { ask } from '../loop/talk.js';
import { runCommand, valuesIn } from './run-command.js';

interface Receipt {
  readonly done: boolean;
  readonly file: string;
  readonly receipt: {
    readonly turns: number;
    readonly policies: readonly {
      readonly lessons: number;
      readonly learned: readonly string[];
      readonly answers: string;
      readonly facts: number;
      readonly files: number;
    }[];
    readonly stays: readonly string[];
  };
}

/** In no file of a machine, unless a person says it. */
const word = 'quixotrombone';
const directory = new TemporaryDirectory('forget');
let machine: TestMachine;
let book: LogBook;
let before = '';

const backtalk = (...words: readonly string[]) =>
  runCommand(['--data', machine.folder, ...words], { folder: directory.path, input: undefined, environment: {} });
const forgetting = async <T>(...words: readonly string[]) =>
  valuesIn<T>(await backtalk('forget', ...words, '--json'))[0];
const keyOf = (user: string) => ({ key: `key-of-${user}-0123456789`, tenant: 'one', user });

async function learnFrom(user: string, what: string, isThere: () => Promise<boolean>): Promise<void> {
  const { key } = keyOf(user);
  const crowd = startCrowd({ gateway: machine.gateway, seed: user.length, clients: 3, corrects: 1, key });
  await until(isThere, { what, timeoutMs: 60_000 });
  await crowd.stop();
}

/** The files of a folder in which a text stands; what services write there meanwhile may go, under its name for a moment only. */
function filesWith(text: string, folder = machine.folder): string[] {
  try {
    return readdirSync(folder, { withFileTypes: true, recursive: true })
      .filter((entry) => entry.isFile())
      .map((entry) => join(entry.parentPath, entry.name))
      .filter((file) => readFileSync(file).includes(text));
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return filesWith(text, folder);
    throw error;
  }
}

const usersOf = async () => new Set((await book.read()).opened.map(({ message }) => message.user));

beforeAll(async () => {
  machine = await startTestMachine({
    engine: 'stand-in',
    training: 'stand-in',
    pace: { tokenMs: 20, answerTokens: 12 },
    keys: [keyOf('ada'), keyOf('benjamin')],
    environment: { trainer: { BACKTALK_RECIPE_SET: 'effective=2,effectiveMin=2,rehearsalSteps=0' } },
  });
  book = await LogBook.open(machine);
  const answers = async () => (await book.stable()) !== 'backtalk-v0';
  await learnFrom('benjamin', 'A version of one person', answers);
  await settleLearning(machine, book, 60_000);
  const [ben] = await usersOf();
  const headers = { authorization: `Bearer ${keyOf('ada').key}` };
  const lesson = JSON.stringify({ text: `From now on say ${word} first.` });
  const post = (path: string, body: string) =>
    fetch(`${machine.gateway}/v1/${path}`, {
      method: 'POST',
      headers: { ...headers, 'content-type': 'application/json' },
      body,
      signal: AbortSignal.timeout(10_000),
    });
  expect((await post('lessons', lesson)).status).toBe(200);
  // Of an answer that the other was given.
  const turn = (await book.read()).opened.at(-1)?.message.turn;
  const correction = JSON.stringify({ turn_id: turn, score: -1, correction: `It is a ${word}.` });
  expect((await post('feedback', correction)).ok).toBe(true);
  const messages = [{ role: 'user' as const, content: `What is a ${word}?` }];
  await ask(machine.gateway, { messages, headers });
  await ask(machine.gateway, { messages, headers: { ...headers, 'x-backtalk-train': 'off' } });
  await backtalk('resume');
  const isTaught = async () => {
    const { batches, staged } = await book.read();
    const taught = batches.find(({ message }) => message.samples.some(({ user }) => user !== ben));
    const stable = staged.filter(({ message: { stage } }) => stage === WeightsStaged_Stage.STAGE_STABLE);
    return taught !== undefined && stable.some(({ message }) => message.version === taught.message.version);
  };
  await learnFrom('ada', 'A version of the other', isTaught);
  await settleLearning(machine, book, 60_000);
  const ada = [...(await usersOf())].find((user) => user !== ben) ?? '';
  const making = (await book.read()).batches.filter(({ message }) => message.samples.length > 0);
  before = making.find(({ message }) => JSON.stringify(message).includes(ada))?.message.parent ?? '';
}, 180_000);

afterAll(async () => {
  await book?.close();
  await machine?.stop();
  directory.remove();
});

it('a person who was never there and one of another tenant get the same answer, and a dry run does nothing', async () => {
  for (const words of [
    ['zoe', '--tenant', 'one', '--yes'],
    ['ada', '--yes'],
  ]) {
    const { stdout, status } = await backtalk('forget', ...words);
    expect([stdout.replace(/of \w+ of \w+/, 'of them'), status]).toEqual(['Nothing is held of them.\n', 0]);
  }
  const stable = await book.stable();
  const dry = await backtalk('forget', 'ada', '--tenant', 'one', '--dry-run');
  expect(dry.stdout).toMatch(/^Nothing is done \(--dry-run\)[^]*answers again, and what others taught since/);
  expect((await backtalk('forget', 'ada', '--tenant', 'one')).status).toBe(2);
  expect(await book.stable()).toBe(stable);
  expect(await usersOf()).toHaveProperty('size', 2);
});

it('nothing that a forgotten person said is on the disk, and the version from before they spoke answers', async () => {
  expect(filesWith(word).length).toBeGreaterThan(0);
  const { opened, judged } = await book.read();
  const stable = await book.stable();
  const [ben = ''] = await usersOf();
  const done = await forgetting<Receipt>('ada', '--tenant', 'one', '--yes');
  const [policy] = done?.receipt.policies ?? [];
  expect(policy).toMatchObject({ answers: before });
  expect(policy?.learned).toContain(stable);
  expect(policy?.lessons).toBeGreaterThan(0);
  expect(policy?.files).toBeGreaterThan(2);
  expect(done?.receipt.stays.join(' ')).toContain('npx backtalk keys revoke');
  expect(await book.stable()).toBe(before);
  expect(filesWith(word)).toEqual([]);
  const after = await book.read();
  // The other's answer that they corrected is judged as it was before.
  const own = judged.filter(({ message: { giver } }) => giver === '' || giver === ben);
  expect(own.length).toBeLessThan(judged.length);
  const rowsOf = (facts: readonly { sequence: number; message: { user: string; turn: string } }[]) =>
    facts.flatMap(({ sequence, message: { user, turn } }) => (user === ben ? [[sequence, turn]] : []));
  expect(after.opened).toHaveLength(rowsOf(after.opened).length);
  expect([rowsOf(after.opened), rowsOf(after.judged)]).toEqual([rowsOf(opened), rowsOf(own)]);
  // The receipt says so of these: a "no" holds on, working memory runs out, and logs of processes name ids.
  const stays = /\/(?:KV_refusals|valkey|logs)\//;
  const others = [...new Set(opened.map(({ message }) => message.user))].filter((user) => user !== ben);
  for (const user of others) expect(filesWith(user).filter((file) => !stays.test(file))).toEqual([]);
  expect((await backtalk('forget', 'ada', '--tenant', 'one', '--yes')).stdout).toBe('Nothing is held of ada of one.\n');
}, 120_000);

it('services that start anew without those facts go on from the version that answers, under names that were never used', async () => {
  const { trained } = await book.read();
  const names = trained.map(({ message }) => message.version);
  for (const service of ['trainer', 'publisher', 'gateway'] as const) {
    const pid = machine.pid(service);
    machine.kill(service, 'SIGKILL');
    await machine.serves(service, pid);
  }
  await backtalk('resume');
  const isOn = async () => !names.includes((await book.read()).trained.at(-1)?.message.version ?? '');
  await learnFrom('benjamin', 'A version from before', isOn);
  expect((await book.read()).trained.at(-1)?.message).toMatchObject({ parent: before });
}, 120_000);

it('a receipt says who signed it, and is refused once a word of it was changed', async () => {
  const file = readdirSync(machine.folder).find((name) => name.startsWith('forgotten-')) ?? '';
  const path = join(machine.folder, file);
  expect((await backtalk('receipt', path)).stdout).toMatch(
    /^Unchanged since it was signed with key [0-9a-f]{16}\.\nForgotten: ada of one/,
  );
  const forged = directory.join('forged.json');
  writeFileSync(forged, readFileSync(path, 'utf8').replace('"turns":', '"pardoned": true,\n    "turns":'));
  expect((await backtalk('receipt', forged)).stderr).toContain('is not a receipt');
  writeFileSync(forged, readFileSync(path, 'utf8').replace('"user": "ada"', '"user": "zoe"'));
  const refused = await backtalk('receipt', forged);
  expect([refused.status, refused.stderr]).toEqual([
    1,
    `${forged} is not as it was signed: something of it was changed since.\n`,
  ]);
  expect((await backtalk('receipt', directory.join('none.json'))).status).toBe(2);
});
