import { recipePresets } from '@backtalk/trainer/recipe';
import { describe, expect, it } from 'vitest';
import { readUser } from '../../simulate/user/user-file.js';
import { baseMadeFrom, madeFrom, recipeDigest, type MadeFrom } from './made-from.js';

const file = readUser('short');
const preset = recipePresets.tiny.recipe;
const digest = (changed: Partial<MadeFrom> = {}) => madeFrom({ part: 'a', files: [file], preset, ...changed });

describe('what a result is made from', () => {
  it('results of a user’s file that was changed since are others, those of the base among them', () => {
    const changed = { ...file, corrections: [...file.corrections, 'Shorter still.'] };
    expect(digest({ files: [changed] })).not.toBe(digest());
    expect(baseMadeFrom(changed)).not.toBe(baseMadeFrom(file));
    expect(digest({ files: [{ ...file }] })).toBe(digest());
  });

  it('results with other numbers in a part’s recipe are others', () => {
    expect(digest({ overrides: 'method=opd' })).not.toBe(digest());
  });

  it.each([
    ['h', { emaDecay: 0.5 }],
    ['j', { stepReward: 'outcome' }],
    ['j', { groupWaitMs: 1_000 }],
  ] as const)('part (%s) has a use for %o, and part (a) has none', (part, numbers) => {
    const other = { ...preset, ...numbers };
    expect(madeFrom({ part, files: [file], preset: other })).not.toBe(madeFrom({ part, files: [file], preset }));
    expect(digest({ preset: other })).toBe(digest());
    expect(recipeDigest(other)).toBe(recipeDigest(preset));
  });
});
