// Style that matters is a test: one test a rule, on the repository as it is.
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { House } from './tidy/house.js';
import { rules } from './tidy/rules.js';

const house = House.read(fileURLToPath(new URL('..', import.meta.url)));

describe('the house', () => {
  it('the house is where these tests look', () => {
    expect(house.has('test/tidy.test.ts')).toBe(true);
    expect(house.has('services/lib/kit/src/index.ts')).toBe(true);
  });

  it.each(rules.map((rule) => [rule.name, rule] as const))('%s', (_name, rule) => {
    const breaches = rule.check(house);
    expect(breaches, `\n${breaches.join('\n')}\n`).toHaveLength(0);
  });
});
