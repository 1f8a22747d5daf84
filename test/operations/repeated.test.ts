// What others taught outlives an undo and a person who leaves: on a machine that learned from three people in turn, the steps of the versions that
// are burned are taken once more without what was undone, and without the one who left.
import { TemporaryDirectory, until } from '@backtalk/kit/testing';
import { WeightsStaged_Stage, type BatchClosed } from '@backtalk/proto/facts';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { startCrowd } from '../loop/crowd.js';
import { LogBook } from '../loop/fact-log.js';
import { setPaused, settleLearning } from '../loop/learning-switch.js';
import { startTestMachine, type TestMachine } from '../loop/machine.js';
import { runCommand, valuesIn } from './run-command.js';

const directory = new TemporaryDirectory('repeated');
/** Each correction takes a reward, in however old an answer. */
const recipe =
  'effective=2,effectiveMin=2,rehearsalSteps=0,baseline=none,rewardVersions=1000,distillVersions=1000,staleLogRatioNats=0';
let machine: TestMachine;
let book: LogBook;
/** Keyed hashes of the people, in the order in which they taught. */
const people: string[] = [];

const backtalk = (...words: readonly string[]) =>
  runCommand(['--data', machine.folder, ...words], { folder: directory.path, input: undefined, environment: {} });
const keyOf = (user: string) => ({ key: `key-of-${user}-0123456789`, tenant: 'one', user });

const batches = async () => (await book.read()).batches.map(({ message }) => message);
const training = async () => (await batches()).filter(({ samples }) => samples.length > 0);
const usersOf = (samples: readonly { readonly user: string }[]) => [...new Set(samples.map(({ user }) => user))];

/** Turns of a person that these batches take a reward of, whatever becomes of lessons; what was judged anew may be left out. */
function rewarded(person: string, of: readonly BatchClosed[]): string[] {
  const samples = of.flatMap((batch) => batch.samples);
  const isCounted = ({ user, advantage, revision }: (typeof samples)[number]) =>
    user === person && advantage !== 0 && revision === 0;
  return samples.filter(isCounted).map(({ turn }) => turn);
}

const turnsIn = (of: readonly BatchClosed[]) => [
  ...new Set(of.flatMap(({ samples }) => samples.map(({ turn }) => turn))),
];

/** Until a batch has a turn of theirs. Out: their keyed hash. */
async function learnFrom(user: string): Promise<string> {
  const first = (await book.read()).opened.length;
  await setPaused(machine, false);
  const { key } = keyOf(user);
  const crowd = startCrowd({ gateway: machine.gateway, seed: user.length, clients: 3, corrects: 1, key });
  const isTaken = async () => {
    const turns = new Set((await book.read()).opened.slice(first).map(({ message }) => message.turn));
    return turnsIn(await training()).some((turn) => turns.has(turn));
  };
  await until(isTaken, { what: `A batch with a turn of ${user}`, timeoutMs: 60_000 });
  await crowd.stop();
  await settleLearning(machine, book, 60_000);
  return (await book.read()).opened.at(-1)?.message.user ?? '';
}

async function untilServed(version: string): Promise<void> {
  const isStable = async () =>
    (await book.read()).staged.some(
      ({ message }) => message.version === version && message.stage === WeightsStaged_Stage.STAGE_STABLE,
    );
  await until(isStable, { what: `${version} serving`, timeoutMs: 60_000 });
}

beforeAll(async () => {
  machine = await startTestMachine({
    engine: 'stand-in',
    training: 'stand-in',
    pace: { tokenMs: 20, answerTokens: 12 },
    keys: ['ann', 'ben', 'cleo'].map(keyOf),
    environment: { trainer: { BACKTALK_RECIPE_SET: recipe } },
  });
  book = await LogBook.open(machine);
  for (const user of ['ann', 'ben', 'cleo']) people.push(await learnFrom(user));
}, 180_000);

afterAll(async () => {
  await book?.close();
  await machine?.stop();
  directory.remove();
});

it('an undone lesson takes nothing from other people: their steps are taken once more without it, and served', async () => {
  const [ann = '', ...others] = people;
  const lesson = (await batches()).at(-1)?.lessons.find(({ scopeUser }) => scopeUser === ann)?.id ?? '';
  await setPaused(machine, false);
  const [undone] = valuesIn<{ burned: string[] }>(await backtalk('undo', lesson, '--json'));
  const burned = undone?.burned ?? [];
  const of = (await training()).filter(({ version }) => burned.includes(version));
  expect(usersOf(of.flatMap(({ samples }) => samples)).toSorted()).toEqual(people.toSorted());
  const seen = async () => (await batches()).filter(({ repeats }) => of.some(({ number }) => number === repeats));
  await until(async () => (await seen()).length === of.length, { what: 'A word on each step', timeoutMs: 60_000 });
  const repeated = (await seen()).filter(({ why }) => why === 'repeated');
  expect(repeated.every((one) => one.samples.every(({ lessons }) => !lessons.includes(lesson)))).toBe(true);
  const kept = others.map((other) => rewarded(other, of));
  for (const turns of kept) expect(turns.length).toBeGreaterThan(0);
  expect(turnsIn(repeated)).toEqual(expect.arrayContaining(kept.flat()));
  const last = repeated.at(-1)?.version ?? '';
  await untilServed(last);
  expect((await backtalk('versions', last)).stdout).toContain('It repeats the step of batch');
}, 120_000);

it('a version’s own recipe is told, whatever is in force where it is asked', async () => {
  const { version = '' } = (await training()).at(-1) ?? {};
  const [shown] = valuesIn<unknown>(await backtalk('recipe', '--of', version, '--json'));
  expect(shown).toMatchObject({ version, recipe: { effective: 2, distillVersions: 1_000, loraRank: 8 } });
  const { stdout } = await backtalk('recipe', '--of', version);
  expect(stdout).toMatch(/^backtalk-v\d+ was made with:\n\n {2}method/);
  expect((await backtalk('recipe', '--of', 'backtalk-v999')).stderr).toContain('There is no version backtalk-v999');
  expect((await backtalk('recipe', '--of', version, '--set', 'effective=4')).status).toBe(2);
});

it('a person who is forgotten takes nothing along that others taught: their steps are closed once more before the log loses them', async () => {
  const [, ben = '', cleo = ''] = people;
  await learnFrom('ben');
  await setPaused(machine, false);
  const before = await training();
  const done = await backtalk('forget', 'cleo', '--tenant', 'one', '--yes', '--json');
  const [value] = valuesIn<{ receipt: { policies: { lost: string[]; learned: string[] }[] } }>(done);
  const { lost, learned = [] } = value?.receipt.policies[0] ?? {};
  expect(lost).toEqual([]);
  const after = (await training()).filter(({ why }) => why === 'repeated');
  const bens = rewarded(
    ben,
    before.filter(({ version }) => learned.includes(version)),
  );
  expect(bens.length).toBeGreaterThan(0);
  expect(turnsIn(after)).toEqual(expect.arrayContaining(bens));
  expect(JSON.stringify(await batches())).not.toContain(cleo);
  await untilServed(after.at(-1)?.version ?? '');
}, 120_000);
