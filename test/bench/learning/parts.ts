// The parts of the experiment, as units that run one after another, each on a machine of its own. In: a plan. Out: units.
import { policy } from '@backtalk/deploy';
import { HostileUser } from '../../simulate/user/hostile-user.js';
import { Random } from '../../simulate/user/random.js';
import { SimulatedUser } from '../../simulate/user/simulated-user.js';
import { readUser, type UserFile } from '../../simulate/user/user-file.js';
import type { TestKey } from '../../loop/machine.js';
import { Environment } from './attempting.js';
import type { Laboratory } from './laboratory.js';
import { presetFor } from './machine-options.js';
import { baseMadeFrom } from './made-from.js';
import type { LearningPlan, PartName } from './options.js';
import { methodRecipes, rewardRecipes, withoutTeacher } from './recipes.js';
import { oneEach, ranOn, type ResultStore, type Row } from './result.js';
import { Talk, type Person } from './talking.js';
import { unit, type About, type Place, type Setting, type Steps, type Unit } from './unit.js';

export function unitsOf(plan: LearningPlan, store: ResultStore, place: Place): Unit[] {
  return plan.parts.flatMap((part) => plan.seeds.flatMap((seed) => makers[part]({ plan, ...place, seed, store })));
}

const makers: Readonly<Record<PartName, (setting: Setting) => Unit[]>> = {
  a: (setting) => setting.plan.users.map((name) => alone(setting, { part: 'a', name, users: [name] })),
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
    const base = { part: 'base', name, seed, madeFrom: baseMadeFrom(fileOf(name)) };
    if (store.find(base) !== undefined) continue;
    const startedAt = performance.now();
    const rows = await laboratory.comparisons(name, key);
    const minutes = (performance.now() - startedAt) / 60_000;
    store.keep({
      ...base,
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

/**
 * @param about the first of its users is whose wish is measured
 * @param spoken says what is corrected and how, where that is not the user's own file
 */
function alone(setting: Setting, about: About, spoken?: UserFile): Unit {
  const [name = about.name] = about.users;
  const steps: Steps = async (laboratory, say) => {
    await compare(laboratory, setting, [name]);
    const talk = new Talk(laboratory, policy, say);
    const people = [personOf(laboratory, spoken ?? fileOf(name), setting.seed)];
    const rows = await block(laboratory, talk, setting, { name, people, of: [name] });
    const taught = await laboratory.taught(name, talk.reached.step);
    return { rows: [...rows, ...taught], talks: [talk] };
  };
  return unit(setting, about, steps);
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
  return unit(setting, { part: 'b', name: turns.join('+'), users: turns }, steps);
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
  return unit(setting, { part: 'c', name: opposites.join('+'), users: opposites }, steps);
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
  return unit(setting, { part: 'c', name, users: opposites }, steps);
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
  return unit(setting, { part: 'd', name: opposites.join('+'), users: opposites }, steps);
}

/** The first wish's rule decides what is corrected; its teacher is shown the second wish, or there is none. */
function controls(setting: Setting): Unit[] {
  const [name, other] = setting.plan.users;
  if (name === undefined) return [];
  const untaught = { part: 'e', name: `${name}, no teacher`, users: [name] } as const;
  const control = alone({ ...setting, recipe: withoutTeacher }, untaught);
  if (other === undefined) return [control];
  const { wish, corrections } = fileOf(other);
  const confused = { ...fileOf(name), wish, corrections };
  return [alone(setting, { part: 'e', name: `${name}, told ${other}`, users: [name, other] }, confused), control];
}

function methods(setting: Setting): Unit[] {
  const [name] = setting.plan.users;
  if (name === undefined) return [];
  return Object.entries(methodRecipes).map(([method, recipe]) =>
    alone({ ...setting, recipe }, { part: 'h', name: `${name}, ${method}`, users: [name] }),
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
    return unit({ ...setting, recipe }, { part: 'j', name: `${name}, ${label}`, users: [name] }, steps);
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
  return unit(setting, { part: 'f', name, users: [name] }, steps);
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
  return unit(setting, { part: 'g', name, users: [name] }, steps);
}

/** A person says what they want from now on, and then nothing more: versions come by themselves. */
function oneCorrection(setting: Setting, name: string): Unit {
  const { seed, plan, base } = setting;
  const rehearsed = Math.min(64, plan.sizes.steps * presetFor(base).optimizerSteps);
  const recipe = `rehearsalSteps=${String(rehearsed)}`;
  const steps: Steps = async (laboratory, say) => {
    await compare(laboratory, setting, [name]);
    const talk = new Talk(laboratory, policy, say);
    await talk.untilTaught(personOf(laboratory, readUser(name), seed));
    const saidAt = performance.now();
    const since = () => (performance.now() - saidAt) / 1_000;
    const measuring = async <T>(work: () => Promise<T>): Promise<T> => {
      await laboratory.rest(policy, true);
      return work();
    };
    await laboratory.decided(policy);
    const first = { ...(await laboratory.serving(policy)), seconds: since() };
    const rows = await measuring(() => laboratory.atTwoSpeeds(name, first));
    for (const stop of stops(0, plan.sizes)) {
      await laboratory.rest(policy, false);
      const reached = await laboratory.reaches(policy, stop);
      // Of later versions with what was measured of those before: a step that had begun goes on meanwhile.
      const seconds = reached.step === first.step ? first.seconds : since();
      const row = await measuring(() => laboratory.measure({ of: name, block: name, ...reached }));
      if (row !== undefined) rows.push({ ...row, seconds });
      if (reached.step < stop) break;
    }
    const last = await laboratory.serving(policy);
    const learned = await laboratory.atTwoSpeeds(name, last);
    const taught = await laboratory.taught(name, last.step);
    return { rows: [...rows, ...learned, ...taught], talks: [talk] };
  };
  return unit({ ...setting, recipe }, { part: 'i', name, users: [name] }, steps);
}
