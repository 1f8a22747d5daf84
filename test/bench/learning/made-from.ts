// What a result is made from, as digests: the recipe, which its folder names, and what its part has otherwise, which stands in itself:
// who talks and is measured, and numbers that differ. Results with another one are never taken for it.
import { sha256Hex } from '@backtalk/kit';
import type { Recipe } from '@backtalk/trainer/recipe';
import type { UserFile } from '../../simulate/user/user-file.js';
import type { PartName } from './options.js';

/** Numbers that most parts have no use for change no result of theirs; these parts have one. */
const unused: ReadonlySet<string> = new Set(['emaDecay', 'stepReward', 'groupWaitMs', 'onlyTemperature', 'remote']);
const usedBy: Partial<Record<PartName, readonly (keyof Recipe)[]>> = {
  h: ['emaDecay'],
  j: ['groupWaitMs', 'stepReward'],
};

/** For the name of a folder: a preset that is not measured changes nothing. */
export function recipeDigest(preset: Recipe): string {
  const used = JSON.stringify(preset, (key, value: unknown) => (unused.has(key) ? undefined : value));
  return sha256Hex(used).slice(0, 6);
}

export interface MadeFrom {
  readonly part: PartName;
  readonly files: readonly UserFile[];
  /** Of the size of the base model. */
  readonly preset: Recipe;
  /** As `backtalk recipe --set` takes it. */
  readonly overrides?: string | undefined;
}

export function madeFrom({ part, files, preset, overrides = '' }: MadeFrom): string {
  const numbers = usedBy[part]?.map((name) => preset[name]) ?? [];
  return digestOf({ files, overrides, numbers });
}

/** What the base answers follows from nothing else. */
export const baseMadeFrom = (file: UserFile): string => digestOf({ files: [file] });

const digestOf = (value: object): string => sha256Hex(JSON.stringify(value)).slice(0, 12);
