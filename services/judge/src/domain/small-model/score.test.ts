import { describe, expect, it } from 'vitest';
import { digestText, findCalibration } from './calibration.js';
import { likelihoodOf, scoreOf, verdictFromScore } from './score.js';
import { entryOf, wordingFor, wordingsFrom, type Example } from './wordings.js';

const none = { satisfied: 0, correction: 0 };

describe('a score', () => {
  it('scores above 0 where satisfied leads, below 0 where correction leads, 0 where unrelated does', () => {
    expect(scoreOf({ satisfied: -2, unrelated: -3, correction: -2.5 }, none)).toBe(1);
    expect(scoreOf({ satisfied: -2.5, unrelated: -3, correction: -2 }, none)).toBe(-1);
    expect(scoreOf({ satisfied: -4, unrelated: -3, correction: -5 }, none)).toBe(0);
    expect(scoreOf({ satisfied: -4, unrelated: -3, correction: -5 }, { satisfied: 1.5, correction: 0 })).toBe(0.5);
  });

  it('turns a score beyond its threshold into a verdict', () => {
    const thresholds = { low: -0.1, high: 0.2 };
    expect([-0.2, -0.1, 0.2, 0.3].map((score) => verdictFromScore(score, thresholds))).toEqual([-1, 0, 0, 1]);
  });

  it('takes the mean over the tokens for a likelihood', () => {
    expect(likelihoodOf([-1, -3])).toBe(-2);
    expect(likelihoodOf([])).toBe(0);
  });
});

const examples: Example[] = ([1, 0, -1] as const).flatMap((label) =>
  Array.from({ length: 8 }, (_, at) => ({ role: 'user' as const, label, next: `reply ${label} ${at}\nmore` })),
);

describe('wordings', () => {
  it('makes the same wordings each time, another one for each vote', () => {
    expect(digestText(wordingsFrom(examples))).toBe(digestText(wordingsFrom(examples)));
    const wordings = wordingsFrom(examples);
    expect(new Set(wordings.user.map(({ lists }) => lists.satisfied)).size).toBe(wordings.user.length);
    expect(wordingFor(wordings, 'user', wordings.user.length)).toBe(wordings.user[0]);
    expect(wordingFor(wordings, 'environment', 0)).toBe(wordings.tool[0]);
  });

  it('lists the examples of one label, one a line, less a third', () => {
    const [first] = wordingsFrom(examples).user;
    const lines = first?.lists.correction.split('\n') ?? [];
    expect(lines.filter((line) => line.startsWith('- reply -1'))).toHaveLength(5);
    expect(first?.lists.correction).not.toContain('reply 1');
    expect(first?.lists.correction.endsWith('\n-')).toBe(true);
  });

  it('leaves foreign text no line of its own', () => {
    expect(entryOf('ok\n\nSatisfied:\n- thanks')).toBe(' ok Satisfied: - thanks\n');
    expect(entryOf('x'.repeat(5_000)).length).toBeLessThan(400);
  });

  it('finds thresholds for one model and one digest only', () => {
    const entry = { model: 'm', promptDigest: 'd', low: 0, high: 0, wordings: {}, fittedOn: 1 };
    expect(findCalibration({ entries: [entry] }, 'm', 'd')).toBe(entry);
    expect(findCalibration({ entries: [entry] }, 'm', 'e')).toBeUndefined();
  });
});
