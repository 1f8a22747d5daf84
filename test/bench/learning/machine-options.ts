// What the experiment's machine is started with: the processes of `npm start`, with any base model, and the recipe that results are
// kept under. In: the base, a seed, what differs. Out: options of a machine. What a shell says of the recipe has no part in it.
import type { BaseModel, TrainingDevice } from '@backtalk/deploy';
import { recipePresets, type Recipe } from '@backtalk/trainer/recipe';
import type { TestKey, TestMachineOptions } from '../../loop/machine.js';

export interface ExperimentMachine {
  /** The laptop's own when it is undefined. */
  readonly base: BaseModel | undefined;
  /** Where steps compute; the CPU when it is undefined. */
  readonly device: TrainingDevice | undefined;
  readonly seed: number;
  /** Numbers of the recipe that differ, as `backtalk recipe --set` takes them. */
  readonly recipe?: string;
  /** Without any, no key is asked for. */
  readonly keys?: readonly TestKey[];
  /** The usual one when left out, whose base is measured and which is the first otherwise. */
  readonly policies?: readonly string[];
}

/** A busy machine loads its model slowly, and the experiment is not about that. */
const readyWithinMs = 300_000;

/** Of the size of the base model. */
export const presetFor = (base: BaseModel | undefined): Recipe => recipePresets[presetName(base)].recipe;
const presetName = (base: BaseModel | undefined) => base?.recipe ?? 'tiny';

export function machineOptions({ base, device, seed, recipe, keys, policies }: ExperimentMachine): TestMachineOptions {
  // Machines of tests rehearse nothing unless they are told to; what is measured here is what `npm start` runs. But for the bound of
  // a sample, which that sets by free memory: samples here are short, and results of one model stay comparable.
  const asShipped = `rehearsalSteps=${presetFor(base).rehearsalSteps}`;
  return {
    engine: 'builtin',
    training: 'real',
    ...(base === undefined ? {} : { base }),
    ...(device === undefined ? {} : { chosen: { device } }),
    environment: {
      all: { BACKTALK_ACK_WAIT: '30s' },
      trainer: {
        BACKTALK_SEED: String(seed),
        BACKTALK_RECIPE: presetName(base),
        BACKTALK_RECIPE_SET: recipe === undefined ? asShipped : `${asShipped},${recipe}`,
      },
    },
    adapt: (spec) => ({ ...spec, readyWithinMs }),
    ...(keys === undefined ? {} : { keys }),
    ...(policies === undefined ? {} : { policies }),
  };
}
