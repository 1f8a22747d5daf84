// The parts of the experiment, as units that run one after another, each on a machine of its own. In: a plan. Out: units.
import { policy, type TrainingDevice } from '@backtalk/deploy';
import { recipePresets } from '@backtalk/trainer/recipe';
import { HostileUser } from '../../simulate/user/hostile-user.js';
import { Random } from '../../simulate/user/random.js';
import { SimulatedUser } from '../../simulate/user/simulated-user.js';
import { readUser, type UserFile } from '../../simulate/user/user-file.js';
import type { TestKey } from '../../loop/machine.js';
import { Environment } from './attempting.js';
import { Laboratory } from './laboratory.js';
import type { LearningPlan, PartName } from './options.js';
import { methodRecipes, rewardRecipes, withoutTeacher } from './recipes.js';
import { oneEach, ranOn, type ResultStore, type Row, type UnitResult } from './result.js';
import { Talk, type Person } from './talking.js';

export type Found = Pick<UnitResult, 'rows' | 'steps' | 'lessons' | 'talk' | 'answers'>;

export interface Unit {
  readonly part: PartName | 'base';
  readonly name: string;
  readonly seed: number;
  run(say: (progress: string) => void): Promise<Found>;
}

type Say = (progress: string) => void;
type Steps = (
  laboratory: Laboratory,
  say: Say,
) => Promise<{ readonly rows: readonly Row[]; readonly talks: readonly Pick<Talk, 'policy' | 'counts'>[] }>;

/** What a unit needs besides its steps. */
interface Setting {
  readonly plan: LearningPlan;
  readonly device: TrainingDevice | undefined;
  readonly seed: number;
  /** What the base answers to a wish is kept as soon as it is measured, and measured once. */
  readonly store: ResultStore;
  readonly recipe?: string;
  readonly keys?: readonly TestKey[];
  readonly policies?: readonly string[];
}

/** @param device where steps compute; on the CPU when left out */
export function unitsOf(plan: LearningPlan, store: ResultStore, device?: TrainingDevice): Unit[] {
  return plan.parts.flatMap((part) => plan.seeds.flatMap((seed) => makers[part]({ plan, device, seed, store })));
}

const makers: Readonly<Record<PartName, (setting: Setting) => Unit[]>> = {
  a: (setting) => setting.plan.users.map((name) => alone(setting, 'a', name, fileOf(name))),
  b: (setting) => [inTurn(setting)],
  c: (setting) => [
    onOneAdapter({ ...setting, keys: keysOf(setting.plan, [policy, policy]) }),
    onOneEach({ ...setting, keys: keysOf(setting.plan, ownPolicies), policies: ownPolicies }),
  ],
  d: (setting) => [changedMind(setting)],
  e: controls,
  f: (setting) => setting.plan.users.slice(0, 1).map((name) => mixedTemperatures(setting, name)),
  h: methods,
  i: (setting) => setting.plan.users.map((name) => oneCorrection(setting, name)),
  j: (setting) => setting.plan.users.slice(0, 1).flatMap((name) => attempts(setting, name)),
  g: (setting) => setting.plan.users.slice(0, 1).map((name) => poisoned({ ...setting, keys: poisonKeys }, name)),
};

const fileOf = (name: string) => readUser(name);
const personOf = (laboratory: Laboratory, file: UserFile, seed: number, key?: string, own = policy): Person => ({
  client: laboratory.client(key),
  policy: own,
  user: new SimulatedUser(file, new Random(seed)),
});

function unit(setting: Setting, part: PartName, name: string, steps: Steps): Unit {
  const { seed } = setting;
  return { part, name, seed, run: (say) => experiment(setting, { part, name, seed }, say, steps) };
}

/** A machine of its own, the steps, and what the log says of them. What is measured is kept as it comes: a stop loses none of it. */
async function experiment(
  { plan, device, seed, recipe, keys, policies, store }: Setting,
  named: Pick<UnitResult, 'part' | 'name' | 'seed'>,
  say: Say,
  steps: Steps,
): Promise<Found> {
  const startedAt = performance.now();
  const options = { model: plan.model, device, sizes: plan.sizes, seed, say };
  const further = {
    ...(recipe === undefined ? {} : { recipe }),
    ...(keys === undefined ? {} : { keys }),
    ...(policies === undefined ? {} : { policies }),
  };
  return Laboratory.lend({ ...options, ...further }, async (laboratory) => {
    const soFar: Row[] = [];
    laboratory.measured = async (row) => {
      soFar.push(row);
      const minutes = (performance.now() - startedAt) / 60_000;
      const empty = { lessons: [], talk: [], answers: [], load: [0, 0] as [number, number] };
      const until = { rows: soFar, steps: await laboratory.steps(), minutes, stopped: true };
      store.keep({ ...named, ...empty, ...until, ...ranOn(device) });
    };
    const { rows, talks } = await steps(laboratory, say);
    const lessons = await Promise.all(
      (keys ?? [{ key: 'none', policies: [policy] }]).map(({ key, policies: [own = policy] = [] }) =>
        laboratory.lessons(own, key),
      ),
    );
    const talk = talks.map(({ policy: about, counts: { sessions, corrected, praised } }) => ({
      policy: about,
      sessions,
      corrected,
      praised,
    }));
    const answers = [...laboratory.answers];
    return { rows: [...rows], steps: await laboratory.steps(), lessons: lessons.flat(), talk, answers };
  });
}

/** Steps at which one block is measured: each `every`, and its end. */
function stops(from: number, { steps, every }: LearningPlan['sizes']): number[] {
  const inner = Array.from({ length: Math.ceil(steps / every) - 1 }, (_, index) => from + (index + 1) * every);
  return [...inner, from + steps];
}

async function compare(
  laboratory: Laboratory,
  { store, seed }: Setting,
  wishes: readonly string[],
  key?: string,
): Promise<void> {
  for (const name of wishes) {
    const unit = { part: 'base', name, seed };
    if (store.find(unit) !== undefined) continue;
    const startedAt = performance.now();
    const rows = await laboratory.comparisons(name, key);
    const minutes = (performance.now() - startedAt) / 60_000;
    store.keep({
      ...unit,
      rows,
      steps: [],
      lessons: [],
      talk: [],
      answers: [],
      minutes,
      load: [0, 0],
      stopped: false,
      ...ranOn(),
    });
  }
}

/** One block of talk, measured on each of these wishes at its end, and on those that are being learned on the way. */
async function block(
  laboratory: Laboratory,
  talk: Pick<Talk, 'until' | 'reached'>,
  { plan }: Setting,
  about: {
    readonly name: string;
    readonly people: readonly Person[];
    readonly of: readonly string[];
    readonly learning?: readonly string[];
    readonly key?: string;
  },
): Promise<Row[]> {
  const rows: Row[] = [];
  const planned = stops(talk.reached.step, plan.sizes);
  for (const stop of planned) {
    const before = talk.reached.step;
    const reached = await talk.until(stop, about.people);
    const isLast = stop === planned.at(-1);
    if (reached.step === before && !isLast) continue;
    for (const of of isLast ? about.of : (about.learning ?? about.of)) {
      const row = await laboratory.measure({ of, block: about.name, ...reached }, about.key);
      if (row !== undefined) rows.push(row);
    }
  }
  return rows;
}

/** @param file says what is corrected and how; measured is the wish of `name` */
function alone(setting: Setting, part: PartName, name: string, file: UserFile, label = name): Unit {
  const steps: Steps = async (laboratory, say) => {
    await compare(laboratory, setting, [name]);
    const talk = new Talk(laboratory, policy, say);
    const people = [personOf(laboratory, file, setting.seed)];
    const rows = await block(laboratory, talk, setting, { name, people, of: [name] });
    const taught = await laboratory.taught(name, talk.reached.step);
    return { rows: [...rows, ...taught], talks: [talk] };
  };
  return unit(setting, part, label, steps);
}

function inTurn(setting: Setting): Unit {
  const { turns } = setting.plan;
  const steps: Steps = async (laboratory, say) => {
    const talk = new Talk(laboratory, policy, say);
    await compare(laboratory, setting, turns);
    const rows: Row[] = [];
    for (const [index, name] of turns.entries()) {
      const people = [personOf(laboratory, fileOf(name), setting.seed)];
      rows.push(
        ...(await block(laboratory, talk, setting, { name, people, of: turns.slice(0, index + 1), learning: [name] })),
      );
    }
    const people = turns.map((name) => personOf(laboratory, fileOf(name), setting.seed + 1));
    rows.push(...(await block(laboratory, talk, setting, { name: 'all together', people, of: turns, learning: [] })));
    return { rows, talks: [talk] };
  };
  return unit(setting, 'b', turns.join('+'), steps);
}

/** Of the two people of part (c), where each has an adapter of their own. */
const ownPolicies = [policy, `${policy}-second`] as const;

/** @param policies what the key of each of the two opens */
function keysOf({ opposites }: LearningPlan, policies: readonly [string, string]): TestKey[] {
  return opposites.map((user, at) => ({
    key: `key-of-${user}`,
    tenant: 'one',
    user,
    policies: [policies[at] ?? policy],
  }));
}

/** Two people on one adapter, each with a key. */
function onOneAdapter(setting: Setting): Unit {
  const { opposites } = setting.plan;
  const [key] = (setting.keys ?? []).map((one) => one.key);
  const steps: Steps = async (laboratory, say) => {
    const talk = new Talk(laboratory, policy, say);
    await compare(laboratory, setting, opposites, key);
    const rows: Row[] = [];
    const people = opposites.map((name) => personOf(laboratory, fileOf(name), setting.seed, `key-of-${name}`));
    const shared = { name: 'one adapter', people, of: opposites, ...(key === undefined ? {} : { key }) };
    rows.push(...(await block(laboratory, talk, setting, shared)));
    return { rows, talks: [talk] };
  };
  return unit(setting, 'c', opposites.join('+'), steps);
}

/** The same two, each with a key to a policy of their own: both learn at once, on one engine and one training worker. */
function onOneEach(setting: Setting): Unit {
  const { opposites } = setting.plan;
  const [key] = (setting.keys ?? []).map((one) => one.key);
  const steps: Steps = async (laboratory, say) => {
    await compare(laboratory, setting, opposites, key);
    const both = await Promise.all(
      opposites.map(async (name, at) => {
        const own = { key: `key-of-${name}`, policy: ownPolicies[at] ?? policy };
        const talk = new Talk(laboratory, own.policy, say);
        const people = [personOf(laboratory, fileOf(name), setting.seed, own.key, own.policy)];
        const rows = await block(laboratory, talk, setting, { name: oneEach, people, of: [name], key: own.key });
        return { rows, talk };
      }),
    );
    return { rows: both.flatMap(({ rows }) => rows), talks: both.map(({ talk }) => talk) };
  };
  const name = `${opposites.join('+')}, ${oneEach}`;
  return unit(setting, 'c', name, steps);
}

function changedMind(setting: Setting): Unit {
  const { opposites } = setting.plan;
  const steps: Steps = async (laboratory, say) => {
    const talk = new Talk(laboratory, policy, say);
    await compare(laboratory, setting, opposites);
    const rows: Row[] = [];
    for (const name of opposites) {
      const people = [personOf(laboratory, fileOf(name), setting.seed)];
      rows.push(...(await block(laboratory, talk, setting, { name, people, of: opposites })));
    }
    return { rows, talks: [talk] };
  };
  return unit(setting, 'd', opposites.join('+'), steps);
}

/** The first wish's rule decides what is corrected; its teacher is shown the second wish, or there is none. */
function controls(setting: Setting): Unit[] {
  const [name, other] = setting.plan.users;
  if (name === undefined) return [];
  const reward = alone({ ...setting, recipe: withoutTeacher }, 'e', name, fileOf(name), `${name}, no teacher`);
  if (other === undefined) return [reward];
  const { wish, corrections } = fileOf(other);
  const confused = { ...fileOf(name), wish, corrections };
  return [alone(setting, 'e', name, confused, `${name}, told ${other}`), reward];
}

function methods(setting: Setting): Unit[] {
  const [name] = setting.plan.users;
  if (name === undefined) return [];
  return Object.entries(methodRecipes).map(([method, recipe]) =>
    alone({ ...setting, recipe }, 'h', name, fileOf(name), `${name}, ${method}`),
  );
}

/** Nobody says anything: an environment checks answers by the wish's rule. */
function attempts(setting: Setting, name: string): Unit[] {
  return Object.entries(rewardRecipes).map(([label, recipe]) => {
    const steps: Steps = async (laboratory, say) => {
      await compare(laboratory, setting, [name]);
      const environment = new Environment(laboratory, policy, fileOf(name), say);
      return {
        rows: await block(laboratory, environment, setting, { name, people: [], of: [name] }),
        talks: [environment],
      };
    };
    return unit({ ...setting, recipe }, 'j', `${name}, ${label}`, steps);
  });
}

function mixedTemperatures(setting: Setting, name: string): Unit {
  const steps: Steps = async (laboratory, say) => {
    const talk = new Talk(laboratory, policy, say);
    const random = new Random(setting.seed);
    const people = [
      { ...personOf(laboratory, fileOf(name), setting.seed), temperature: () => (random.chance(0.5) ? 0.1 : 0.8) },
    ];
    return { rows: await block(laboratory, talk, setting, { name, people, of: [name] }), talks: [talk] };
  };
  return unit(setting, 'f', name, steps);
}

const keysNamed = (name: string, count: number) =>
  Array.from({ length: count }, (_, at) => `key-of-${name}-${String(at + 1)}`);
/** Of ten sessions, those of somebody hostile. */
const hostileOfTen = 3;
const honestKeys = keysNamed('honest', 10 - hostileOfTen);
const hostileKeys = keysNamed('hostile', 10);
/** All of one tenant, at one policy. */
const poisonKeys: readonly TestKey[] = [...honestKeys, ...hostileKeys].map((key) => ({
  key,
  tenant: 'one',
  user: key.slice('key-of-'.length),
  policies: [policy],
}));

/** Seven people have one wish, a session of ten each; the other three are of ten people who praise what is unwanted and blame what is wanted. */
function poisoned(setting: Setting, name: string): Unit {
  const [key] = honestKeys;
  const steps: Steps = async (laboratory, say) => {
    const about = key === undefined ? {} : { key };
    await compare(laboratory, setting, [name], key);
    const talk = new Talk(laboratory, policy, say);
    const honest = honestKeys.map((own, at) => personOf(laboratory, fileOf(name), setting.seed + at, own));
    const random = new Random(setting.seed);
    const hostile = hostileKeys.map((own) => ({
      client: laboratory.client(own),
      policy,
      user: new HostileUser(fileOf(name), random),
    }));
    // A hundred sessions are a round: each hostile key has three of them.
    const people = hostile.flatMap((one) => [...Array.from({ length: hostileOfTen }, () => one), ...honest]);
    const rows = await block(laboratory, talk, setting, { name, people, of: [name], ...about });
    return { rows, talks: [talk] };
  };
  return unit(setting, 'g', name, steps);
}

/** A person says what they want from now on, and then nothing more: versions come by themselves. */
function oneCorrection(setting: Setting, name: string): Unit {
  const { seed, plan } = setting;
  const rehearsed = Math.min(64, plan.sizes.steps * recipePresets.tiny.recipe.optimizerSteps);
  const recipe = `rehearsalSteps=${String(rehearsed)}`;
  const steps: Steps = async (laboratory, say) => {
    await compare(laboratory, setting, [name]);
    const talk = new Talk(laboratory, policy, say);
    await talk.untilTaught(personOf(laboratory, readUser(name), seed));
    const saidAt = performance.now();
    const measuring = async <T>(work: () => Promise<T>): Promise<T> => {
      await laboratory.rest(policy, true);
      return work();
    };
    await laboratory.decided(policy);
    const rows = await measuring(async () => laboratory.atTwoSpeeds(name, await laboratory.serving(policy)));
    for (const stop of stops(0, plan.sizes)) {
      await laboratory.rest(policy, false);
      const reached = await laboratory.reaches(policy, stop);
      // With what was measured of versions before: a step that had begun goes on meanwhile.
      const seconds = (performance.now() - saidAt) / 1_000;
      const row = await measuring(() => laboratory.measure({ of: name, block: name, ...reached }));
      if (row !== undefined) rows.push({ ...row, seconds });
      if (reached.step < stop) break;
    }
    const last = await laboratory.serving(policy);
    const learned = await laboratory.atTwoSpeeds(name, last);
    const taught = await laboratory.taught(name, last.step);
    return { rows: [...rows, ...learned, ...taught], talks: [talk] };
  };
  return unit({ ...setting, recipe }, 'i', name, steps);
}
