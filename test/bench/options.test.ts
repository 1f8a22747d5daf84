import { describe, expect, it } from 'vitest';
import type { Benchmark } from './benchmark.js';
import { helpText, readOptions } from './options.js';

const named = (name: string): Benchmark => ({
  name,
  about: `measures ${name}`,
  run: () => Promise.resolve({ figures: [], notes: [] }),
});
const all = [named('gateway'), named('swap'), named('memory')];
const namesOf = (argv: string[]) => readOptions(argv, all).chosen.map(({ name }) => name);

describe('options of the benchmarks', () => {
  it('every benchmark runs where no option is given', () => {
    expect(namesOf([])).toEqual(['gateway', 'swap', 'memory']);
  });

  it('--only takes one or more, in the order of the list', () => {
    expect(namesOf(['--only', 'memory,gateway'])).toEqual(['gateway', 'memory']);
    expect(namesOf(['--only', 'swap', '--only', 'memory'])).toEqual(['swap', 'memory']);
  });

  it('refuses names and options that do not exist, in words', () => {
    expect(() => namesOf(['--only', 'speed'])).toThrow("There is no benchmark 'speed'.");
    expect(() => namesOf(['--fast'])).toThrow('--fast');
  });

  it('the help names every benchmark', () => {
    for (const { about } of all) expect(helpText(all)).toContain(about);
  });
});
