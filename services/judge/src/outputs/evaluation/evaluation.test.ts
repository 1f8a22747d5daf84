import { describe, expect, it } from 'vitest';
import { balancedAccuracy, bootstrapInterval, type Pair } from '../../domain/evaluation/balanced-accuracy.js';
import { fitCalibration } from '../../domain/evaluation/fit.js';
import { grouped } from '../../domain/evaluation/grouped.js';
import type { LabelledItem } from '../../domain/labelled-item.js';
import { readCalibrationTable, readLabelledItems, readReader, scoredPrompts } from '../labelled-set.js';
import { evaluateJudge } from './evaluate.js';

const items = readLabelledItems();
const count = (wanted: (item: LabelledItem) => boolean) => items.filter((item) => wanted(item)).length;

describe('the labelled set', () => {
  it('has 260 next states and more, of every class, role and kind in every part', () => {
    expect(items.length).toBeGreaterThanOrEqual(260);
    for (const split of ['fewshot', 'dev', 'calibration', 'test'] as const)
      for (const role of ['user', 'tool'] as const)
        for (const label of [-1, 0, 1] as const)
          expect(count((item) => item.split === split && item.role === role && item.label === label)).toBeGreaterThan(
            5,
          );
    for (const tag of ['polite', 'rude', 'indirect', 'injection'])
      expect(count((item) => item.split === 'test' && item.tags.includes(tag))).toBeGreaterThan(5);
  });

  it('is split by wording family, and 210 next states and more are kept for the test', () => {
    for (const [, family] of grouped(items, (item) => item.family))
      expect(new Set(family.map(({ split }) => split)).size).toBe(1);
    expect(count(({ split }) => split === 'test')).toBeGreaterThanOrEqual(210);
    expect(new Set(items.map(({ next, role }) => `${role} ${next}`)).size).toBe(items.length);
  });

  it('has thresholds for the prompts as they are', () => {
    const { digest, wordings } = scoredPrompts(items);
    const entry = readCalibrationTable().entries.find(({ promptDigest }) => promptDigest === digest);
    expect(entry?.weights).toBeDefined();
    expect(Object.keys(entry?.wordings ?? {}).sort()).toEqual(
      [...wordings.user, ...wordings.tool].map(({ id }) => id).sort(),
    );
  });
});

const pair = (label: Pair['label'], verdict: Pair['verdict'], family = 'f'): Pair => ({ label, verdict, family });

describe('balanced accuracy', () => {
  it('counts each class the same', () => {
    expect(balancedAccuracy([pair(1, 1), pair(1, 1), pair(1, 1), pair(-1, 1)])).toBe(0.5);
    expect(balancedAccuracy([])).toBe(0);
  });

  it('has the same interval each time, around the value', () => {
    const pairs = Array.from({ length: 60 }, (_, at) =>
      pair(at % 2 === 0 ? 1 : -1, at % 3 === 0 ? 0 : 1, `f${at % 9}`),
    );
    const interval = bootstrapInterval(pairs);
    expect(bootstrapInterval(pairs)).toEqual(interval);
    expect(interval.low).toBeLessThanOrEqual(balancedAccuracy(pairs));
    expect(interval.high).toBeGreaterThanOrEqual(balancedAccuracy(pairs));
  });
});

describe('fitting', () => {
  it('finds biases that tell the classes apart', () => {
    const shifted = ([1, 0, -1] as const).flatMap((label) =>
      Array.from({ length: 6 }, (_, at) => ({
        wording: 'w',
        item: `${label}-${at}`,
        label,
        // Satisfied looks likelier than it is.
        found: {
          satisfied: label === 1 ? -1 : -2,
          unrelated: label === 0 ? -2.3 : -3,
          correction: label === -1 ? -2 : -4,
        },
      })),
    );
    const entry = fitCalibration(shifted, 'm', 'd', 18);
    expect(entry.wordings['w']?.satisfied).toBeLessThan(0);
    expect(entry).toMatchObject({ model: 'm', promptDigest: 'd', fittedOn: 18 });
  });
});

describe('evaluateJudge', () => {
  it('gives a row for each way of judging, also without an engine', async () => {
    const dev = items.filter(({ split }, at) => split === 'dev' && at % 5 === 0);
    const seen: number[] = [];
    const rows = await evaluateJudge({
      voter: undefined,
      engine: undefined,
      items: dev,
      votes: 3,
      onProgress: (done) => seen.push(done),
    });
    expect(rows.map(({ name }) => name)).toEqual(['majority baseline', 'model alone', 'evidence alone', 'both']);
    expect(rows[0]?.balancedAccuracy).toBeCloseTo(1 / 3);
    expect(rows[2]?.balancedAccuracy).toBeGreaterThan(rows[1]?.balancedAccuracy ?? 1);
    expect(seen.at(-1)).toBe(dev.length);
  });

  it('reads words where it is given a reader, which has learned from no tested next state', async () => {
    const calibration = items.filter(({ split }) => split === 'calibration');
    const learnedFrom = items.filter(({ split }) => split === 'fewshot' || split === 'dev');
    const without = { voter: undefined, engine: undefined, items: calibration, votes: 0 };
    const [, , plain] = await evaluateJudge(without);
    const [, , read] = await evaluateJudge({ ...without, reader: readReader(learnedFrom) });
    expect(read?.balancedAccuracy).toBeGreaterThan((plain?.balancedAccuracy ?? 1) + 0.1);
  });

  it('shows that injected text does not turn evidence', async () => {
    const injected = items.filter(({ tags, split }) => split === 'dev' && tags.includes('injection'));
    const rows = await evaluateJudge({ voter: undefined, engine: undefined, items: injected, votes: 0 });
    expect(rows.find(({ name }) => name === 'evidence alone')?.injectionFlipRate).toBe(0);
  });
});
