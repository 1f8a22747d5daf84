import { describe, expect, it } from 'vitest';

import { nextKlBeta } from './carried-state.js';

describe('the KL weight', () => {
  it('the KL weight is off until the policy drifts beyond the target', () => {
    expect(nextKlBeta(0, 5, 20)).toBe(0);
    expect(nextKlBeta(0, 25, 20)).toBe(0);
    expect(nextKlBeta(0, 31, 20)).toBe(0.001);
  });

  it('the KL weight doubles above the target, halves below, and ends at 0', () => {
    expect(nextKlBeta(0.004, 31, 20)).toBe(0.008);
    expect(nextKlBeta(0.004, 20, 20)).toBe(0.004);
    expect(nextKlBeta(0.004, 13, 20)).toBe(0.002);
    expect(nextKlBeta(0.001, 13, 20)).toBe(0);
    expect(nextKlBeta(0.9, 100, 20)).toBe(1);
  });

  it('the KL weight stays where it is without a measurement', () => {
    expect(nextKlBeta(0.004, undefined, 20)).toBe(0.004);
    expect(nextKlBeta(0.004, Number.NaN, 20)).toBe(0.004);
  });
});
