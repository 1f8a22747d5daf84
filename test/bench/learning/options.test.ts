import { describe, expect, it } from 'vitest';
import { readUser } from '../../simulate/user/user-file.js';
import { readPlan } from './options.js';

describe('the plan of the learning experiment', () => {
  it('plans all parts with one seed where nothing is said, and five seeds with --full', () => {
    expect(readPlan([])).toMatchObject({
      parts: ['a', 'b', 'c', 'd', 'e', 'f', 'g', 'h', 'i', 'j'],
      seeds: [1],
      model: undefined,
    });
    expect(readPlan(['--full']).seeds).toHaveLength(5);
  });

  it('takes what is said before what is usual', () => {
    const plan = readPlan(['--full', '--only', 'b,e', '--seeds', '7', '--steps', '4', '--turns', 'one, two']);
    expect(plan).toMatchObject({
      parts: ['b', 'e'],
      seeds: [7],
      turns: ['one', 'two'],
      sizes: { steps: 4, samples: 2 },
    });
  });

  it('no plan asks for more held-out questions than each of its users has', () => {
    for (const argv of [[], ['--full']]) {
      const { users, turns, opposites, sizes } = readPlan(argv);
      const counts = [...users, ...turns, ...opposites].map((name) => readUser(name).questions.heldout.length);
      expect(Math.min(...counts)).toBeGreaterThanOrEqual(sizes.questions);
    }
  });

  it('a full plan has eight wishes alone, six in turn and five seeds', () => {
    const { users, turns, seeds } = readPlan(['--full']);
    expect([new Set(users).size, new Set(turns).size, new Set(seeds).size]).toEqual([8, 6, 5]);
  });

  it.each([
    [['--only', 'a,z'], /no part 'z'/],
    [['--steps', '0'], /--steps takes whole numbers/],
    [['--seeds', '1,x'], /--seeds takes whole numbers/],
    [['--questions', '40'], /--questions takes whole blocks of 32.*not '40'/],
    [['--device', 'tpu'], /--device.*cpu, cuda or auto/],
    [['--opposites', 'one'], /--opposites takes two wishes/],
    [['--colour', 'red'], /--colour/],
  ])('refuses %j', (argv, words) => {
    expect(() => readPlan(argv)).toThrow(words);
  });
});
