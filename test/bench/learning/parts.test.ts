import { describe, expect, it } from 'vitest';
import { readPlan } from './options.js';
import { unitsOf } from './parts.js';
import { ResultStore } from './result.js';

const namesOf = (...argv: string[]) => {
  const plan = readPlan(argv);
  const place = { base: undefined, device: undefined };
  return unitsOf(plan, new ResultStore(plan.results), place).map(
    ({ part, name, seed }) => `${part} ${name} ${String(seed)}`,
  );
};

describe('units of the learning experiment', () => {
  it('lets two people teach opposite wishes on one adapter and on one each, with every seed', () => {
    expect(namesOf('--only', 'c', '--opposites', 'one-sentence,long', '--seeds', '1,2')).toEqual([
      'c one-sentence+long 1',
      'c one-sentence+long, one each 1',
      'c one-sentence+long 2',
      'c one-sentence+long, one each 2',
    ]);
  });

  it('each method has a unit, of the first wish', () => {
    expect(namesOf('--only', 'h', '--users', 'emoji,name')).toEqual([
      'h emoji, binary 1',
      'h emoji, opd, sampled 1',
      'h emoji, opd, topk 1',
      'h emoji, opd, full, reverse KL 1',
      'h emoji, opd, full 1',
      'h emoji, opd, hybrid 1',
      'h emoji, opd, hybrid, the first third of the tokens 1',
      'h emoji, opd, hybrid, taught by itself 1',
      'h emoji, opd, hybrid, taught by its average 1',
      'h emoji, combined, constant KL 1',
    ]);
  });

  it('attempts at a task have a unit for each form of the reward, of the first wish', () => {
    expect(namesOf('--only', 'j', '--users', 'emoji,name')).toEqual([
      'j emoji, outcome and votes 1',
      'j emoji, outcome alone 1',
    ]);
  });

  it('refuses more held-out questions than a user has, before anything is run', () => {
    expect(() => namesOf('--only', 'a', '--users', 'short,name', '--questions', '64')).toThrow(
      /^--questions 64 is more than the 32 held-out questions of name\./,
    );
    expect(namesOf('--only', 'a', '--users', 'short', '--questions', '64')).toEqual(['a short 1']);
  });

  it('units that differ in their users or their recipe are made from something else', () => {
    const plan = readPlan(['--only', 'a,e,h,i', '--users', 'emoji,name']);
    const units = unitsOf(plan, new ResultStore(plan.results), { base: undefined, device: undefined });
    const digests = new Map(units.map(({ part, name, madeFrom }) => [`${part} ${name}`, madeFrom]));
    const ofEmoji = ['a emoji', 'e emoji, no teacher', 'e emoji, told name', 'h emoji, binary', 'i emoji'];
    expect(new Set([...ofEmoji, 'a name'].map((name) => digests.get(name))).size).toBe(6);
  });

  it('gives every unit a name of its own, under which its result is kept', () => {
    const names = namesOf();
    expect(new Set(names).size).toBe(names.length);
  });
});
