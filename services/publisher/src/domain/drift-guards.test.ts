import { describe, expect, it } from 'vitest';
import { judgeDrift, whyRollBack, type AnswerFigures } from './drift-guards.js';

const limits = { entropyFactor: 4, lengthFactor: 5, rollbackFactor: 10 };
const figures = (entropy: number | undefined, tokens = 20, version = 'v1'): AnswerFigures => ({
  version,
  entropy,
  tokens,
});
const why = (candidate: AnswerFigures, ...others: AnswerFigures[]) => judgeDrift(candidate, others, limits).why;

describe('judgeDrift', () => {
  it('lets everything within its bounds pass, and says what was measured', () => {
    expect(judgeDrift(figures(0.4, 4), [figures(1.6), figures(1.5, 24, 'v0')], limits)).toEqual({
      why: '',
      measurements: { answer_entropy: 0.4, answer_tokens: 4 },
    });
  });

  it('holds on entropy on either side and beside either version, and on what is no number', () => {
    expect(why(figures(0.39), figures(1.6))).toContain('entropy: 0.390');
    expect(why(figures(6.5), figures(1.6))).toContain('entropy: 6.50');
    expect(why(figures(0.4), figures(0.5), figures(2, 20, 'v0'))).toContain('of v0');
    expect(why(figures(Number.NaN), figures(1))).toContain('entropy');
  });

  it('holds on length beside what serves, never beside the base', () => {
    expect(why(figures(1, 3.9), figures(1, 20))).toContain('length: 3.90');
    expect(why(figures(1, 2), figures(1, 6), figures(1, 24, 'v0'))).toBe('');
  });

  it('asks nothing where engines give no logprobs', () => {
    expect(why(figures(undefined), figures(1))).toBe('');
    expect(why(figures(1), figures(undefined))).toBe('');
  });
});

describe('whyRollBack', () => {
  it('goes by the share of the base’s entropy that is left, and by nothing that was not measured', () => {
    expect(whyRollBack({ entropy_ratio: 0.11 }, limits)).toBe('');
    expect(whyRollBack({ entropy_ratio: 0.09 }, limits)).toMatch(/^served_entropy: 0\.0900 /);
    expect(whyRollBack({ entropy: 0.01 }, limits)).toBe('');
  });
});
