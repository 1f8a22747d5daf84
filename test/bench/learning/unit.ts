// One unit of the experiment: a machine of its own, the steps of its part, and what the log says of them. In: a plan, whose wishes it
// is about, steps. Out: what was found. What is measured is kept as it comes: a stop loses none of it.
import { policy, type BaseModel, type TrainingDevice } from '@backtalk/deploy';
import type { TestKey } from '../../loop/machine.js';
import { readUser, type UserFile } from '../../simulate/user/user-file.js';
import { benchErrors } from '../errors.js';
import { Laboratory } from './laboratory.js';
import { presetFor } from './machine-options.js';
import { madeFrom } from './made-from.js';
import type { LearningPlan, PartName } from './options.js';
import { ranOn, type ResultStore, type Row, type UnitKey, type UnitResult } from './result.js';
import type { Talk } from './talking.js';

export type Found = Pick<UnitResult, 'rows' | 'steps' | 'lessons' | 'talk' | 'answers'>;
export type Say = (progress: string) => void;

export interface Unit extends UnitKey {
  run(say: Say): Promise<Found>;
}

export type Steps = (
  laboratory: Laboratory,
  say: Say,
) => Promise<{ readonly rows: readonly Row[]; readonly talks: readonly Pick<Talk, 'policy' | 'counts'>[] }>;

/** What machines are made of, beside the plan. */
export interface Place {
  /** The laptop's own when it is undefined. */
  readonly base: BaseModel | undefined;
  /** Where steps compute; the CPU when it is undefined. */
  readonly device: TrainingDevice | undefined;
}

/** What a unit needs besides its steps. */
export interface Setting extends Place {
  readonly plan: LearningPlan;
  readonly seed: number;
  /** What the base answers to a wish is kept as soon as it is measured, and measured once. */
  readonly store: ResultStore;
  readonly recipe?: string;
  readonly keys?: readonly TestKey[];
  readonly policies?: readonly string[];
}

export interface About {
  readonly part: PartName;
  readonly name: string;
  /** Whose files it is made from. */
  readonly users: readonly string[];
}

export function unit(setting: Setting, { part, name, users }: About, steps: Steps): Unit {
  const { seed, plan, base, recipe: overrides } = setting;
  const files = users.map((one) => measurable(one, plan.sizes.questions));
  const key = { part, name, seed, madeFrom: madeFrom({ part, files, preset: presetFor(base), overrides }) };
  return { ...key, run: (say) => experiment(setting, key, say, steps) };
}

/** Fewer questions than were asked for would be written up as though they had been that many. */
function measurable(name: string, questions: number): UserFile {
  const file = readUser(name);
  const there = new Set(file.questions.heldout.slice(0, questions)).size;
  if (there === questions) return file;
  throw benchErrors.usage({ why: `--questions ${questions} is more than the ${there} held-out questions of ${name}.` });
}

/** A machine of its own, the steps, and what the log says of them. What is measured is kept as it comes: a stop loses none of it. */
async function experiment(
  { plan, base, device, seed, recipe, keys, policies, store }: Setting,
  key: UnitKey,
  say: Say,
  steps: Steps,
): Promise<Found> {
  const startedAt = performance.now();
  const options = { base, device, sizes: plan.sizes, seed, say };
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
      store.keep({ ...key, ...empty, ...until, ...ranOn(device) });
    };
    const { rows, talks } = await steps(laboratory, say);
    const lessons = await Promise.all(
      (keys ?? [{ key: 'none', policies: [policy] }]).map(({ key: holder, policies: [own = policy] = [] }) =>
        laboratory.lessons(own, holder),
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
