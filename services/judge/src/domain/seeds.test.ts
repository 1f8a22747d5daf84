import { expect, it } from 'vitest';
import { seedOf } from './seeds.js';

it('a seed is a number that every host takes, the same for the same vote', () => {
  const seeds = Array.from({ length: 64 }, (_, vote) => seedOf('turn', vote));
  expect(Math.max(...seeds)).toBeLessThan(2 ** 31);
  expect(new Set(seeds).size).toBe(64);
  expect(seedOf('turn', 7)).toBe(seeds[7]);
});
