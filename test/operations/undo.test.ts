// `npx backtalk undo`, on a machine that has learned: what it says it would do, what it does, and that learning goes on from there.
import { TemporaryDirectory, until } from '@backtalk/kit/testing';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { startCrowd } from '../loop/crowd.js';
import { LogBook } from '../loop/fact-log.js';
import { settleLearning } from '../loop/learning-switch.js';
import { startTestMachine, type TestMachine } from '../loop/machine.js';
import { runCommand, valuesIn } from './run-command.js';

interface Undone {
  readonly lesson: string;
  readonly done: boolean;
  readonly retired: readonly string[];
  readonly to: string;
  readonly burned: readonly string[];
}

const directory = new TemporaryDirectory('undo');
let machine: TestMachine;
let book: LogBook;

const backtalk = (...words: readonly string[]) =>
  runCommand(['--data', machine.folder, ...words], { folder: directory.path, input: undefined, environment: {} });

async function valuesOf<T>(...words: readonly string[]): Promise<T[]> {
  return valuesIn<T>(await backtalk(...words, '--json'));
}

const lessons = () => valuesOf<{ id: string; state: string }>('lessons');

async function learnUntil(what: string, isThere: () => Promise<boolean>): Promise<void> {
  const crowd = startCrowd({ gateway: machine.gateway, seed: 8, clients: 3, corrects: 1 });
  await until(isThere, { what, timeoutMs: 60_000 });
  await crowd.stop();
}

beforeAll(async () => {
  machine = await startTestMachine({
    engine: 'stand-in',
    training: 'stand-in',
    pace: { tokenMs: 20, answerTokens: 12 },
    environment: { trainer: { BACKTALK_RECIPE_SET: 'effective=2,effectiveMin=2' } },
  });
  book = await LogBook.open(machine);
  await learnUntil('Three versions', async () => (await book.read()).staged.length >= 6);
  await settleLearning(machine, book, 60_000);
});

afterAll(async () => {
  await book?.close();
  await machine?.stop();
  directory.remove();
});

it('a lesson that is not there is refused, and a dry run says what would be done and does nothing', async () => {
  expect((await backtalk('undo', 'never-was')).stderr).toContain('There is no lesson never-was');
  const stable = await book.stable();
  const [{ id } = { id: '' }] = await lessons();
  expect((await backtalk('undo', id, '--dry-run')).stdout).toMatch(/^Nothing is done \(--dry-run\)[^]*answers again/);
  expect((await lessons())[0]?.state).not.toBe('retired');
  expect(await book.stable()).toBe(stable);
});

it('an undone lesson is retired, what was taught it is burned, and learning goes on from the version before', async () => {
  const [{ id } = { id: '' }] = await lessons();
  const stable = await book.stable();
  const [plan] = await valuesOf<Undone>('undo', id, '--dry-run');
  expect(plan).toMatchObject({ lesson: id, done: false, retired: [id], to: 'backtalk-v0' });
  expect(plan?.burned[0]).toBe(stable);
  const [done] = await valuesOf<Undone>('undo', id);
  expect(done).toEqual({ ...plan, done: true });
  expect(await book.stable()).toBe('backtalk-v0');
  await until(async () => (await lessons())[0]?.state === 'retired', { what: 'The trainer’s word' });
  expect(await valuesOf('undo', id)).toMatchObject([{ retired: [], to: '', burned: [] }]);
  await backtalk('resume');
  const { trained } = await book.read();
  await learnUntil('A version from the base', async () => (await book.read()).trained.length > trained.length);
  // Others may follow it at once.
  expect((await book.read()).trained[trained.length]?.message).toMatchObject({ parent: 'backtalk-v0' });
});

it('an undo goes no further while the trainer does not know that the lesson has ended, and ends when told again', async () => {
  // A lesson that is given is rehearsed at once.
  await settleLearning(machine, book, 60_000);
  const [{ id } = { id: '' }] = await valuesOf<{ id: string }>('lessons', 'add', 'Use', 'metric', 'units.');
  machine.kill('trainer', 'SIGSTOP');
  const { stdout, stderr } = await backtalk('undo', id, '--wait', '1s');
  machine.kill('trainer', 'SIGCONT');
  expect(stdout).toBe('Waiting: the trainer has not taken that in.\n');
  expect(stderr).toContain('The lesson is retired, and the trainer has not taken that in');
  expect(await valuesOf('undo', id)).toMatchObject([{ lesson: id, done: true, to: '', burned: [] }]);
}, 120_000);
