import { createStandingSentences, readIsBare, readReader, weigh, wordLikelihoods } from '@backtalk/judge';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { repositoryRoot } from '@backtalk/kit/testing';
import { describe, expect, it } from 'vitest';
import { balancedAccuracy, bootstrapInterval, type Pair } from './balanced-accuracy.js';
import { evaluateJudge } from './evaluate.js';
import { fitWeighing } from './fit-weighing.js';
import { fitBare } from './fit-bare.js';
import { fitStanding, readStandingMessages } from './fit-standing.js';
import { fitRole, fitWords } from './fit-words.js';
import { grouped, readItems, type LabelledItem } from './items.js';
import { readSamples } from './sources.js';
import { measureWishes } from './wishes.js';

const items = readItems();
const count = (wanted: (item: LabelledItem) => boolean) => items.filter((item) => wanted(item)).length;

describe('the labelled set', () => {
  it('the labelled set has enough next states of every class, role and kind in every part', () => {
    expect(items.length).toBeGreaterThanOrEqual(260);
    for (const split of ['dev', 'calibration', 'test'] as const)
      for (const role of ['user', 'tool'] as const)
        for (const label of [-1, 0, 1] as const)
          expect(count((item) => item.split === split && item.role === role && item.label === label)).toBeGreaterThan(
            5,
          );
    for (const tag of ['polite', 'rude', 'indirect', 'injection'])
      expect(count((item) => item.split === 'test' && item.tags.includes(tag))).toBeGreaterThan(5);
  });

  it('the labelled set is split by wording family, and 210 next states and more are kept for the test', () => {
    for (const [, family] of grouped(items, (item) => item.family))
      expect(new Set(family.map(({ split }) => split)).size).toBe(1);
    expect(count(({ split }) => split === 'test')).toBeGreaterThanOrEqual(210);
    expect(new Set(items.map(({ next, role }) => `${role} ${next}`)).size).toBe(items.length);
  });
});

const pair = (label: Pair['label'], verdict: Pair['verdict'], family = 'f'): Pair => ({ label, verdict, family });

describe('balanced accuracy', () => {
  it('counts each class the same', () => {
    expect(balancedAccuracy([pair(1, 1), pair(1, 1), pair(1, 1), pair(-1, 1)])).toBe(0.5);
    expect(balancedAccuracy([])).toBe(0);
  });

  it('an accuracy’s interval is the same each time, around the value', () => {
    const pairs = Array.from({ length: 60 }, (_, at) =>
      pair(at % 2 === 0 ? 1 : -1, at % 3 === 0 ? 0 : 1, `f${at % 9}`),
    );
    const interval = bootstrapInterval(pairs);
    expect(bootstrapInterval(pairs)).toEqual(interval);
    expect(interval.low).toBeLessThanOrEqual(balancedAccuracy(pairs));
    expect(interval.high).toBeGreaterThanOrEqual(balancedAccuracy(pairs));
  });
});

describe('fitting the words', () => {
  const examples = (['good', 'fine'] as const).flatMap((word) => [
    { features: new Set([word, 'work', `${word} work`]), label: 1 as const },
    { features: new Set([word, 'not', `not ${word}`]), label: -1 as const },
    { features: new Set([word, 'rain', 'snow']), label: 0 as const },
  ]);

  it('finds which words go with which verdict, the same each time', () => {
    const fitted = fitRole(examples);
    expect(fitRole(examples)).toEqual(fitted);
    const { satisfied, unrelated, correction } = wordLikelihoods(fitted, new Set(['rain', 'snow']));
    expect(unrelated).toBeGreaterThan(Math.max(satisfied, correction));
  });

  it('gives no weight to what was seen once', () => {
    expect(Object.keys(fitRole(examples).features)).not.toContain('good work');
  });
});

describe('the weights of words', () => {
  it('the weights of words leave at most a tenth of the satisfied taken for corrections', () => {
    const words = { satisfied: -1.2, unrelated: -1.5, correction: -0.7 };
    const clear = { satisfied: -0.2, unrelated: -3, correction: -2 };
    const doubtful = Array.from({ length: 5 }, () => ({ words, label: 1 as const }));
    const rest = ([1, 0, -1] as const).flatMap((label) =>
      Array.from({ length: 10 }, () => ({ words: label === 1 ? clear : words, label })),
    );
    const fitted = fitWeighing([...doubtful, ...rest]);
    expect(weigh(fitted, words)).not.toBe(-1);
  });
});

describe("the judge's fitted files", () => {
  // The weights take a fit for each source: `fit-main.js --check` looks at them, too.
  it('the judge’s words are what the labelled sources give, without what is kept for the test', () => {
    const samples = readSamples(items);
    const text = readFileSync(join(repositoryRoot(), 'services/judge/labelled/words.json'), 'utf8');
    expect(JSON.parse(text)).toEqual(fitWords(samples));
    expect(text.length).toBeLessThan(2_000_000);
    const bare = readFileSync(join(repositoryRoot(), 'services/judge/labelled/bare.json'), 'utf8');
    expect(JSON.parse(bare)).toEqual(fitBare(samples));
    const standing = readFileSync(join(repositoryRoot(), 'services/judge/labelled/standing.json'), 'utf8');
    expect(JSON.parse(standing)).toEqual(fitStanding(readStandingMessages(), samples));
  });

  it('the judge hears that a wish stands in words of a hand that it was not fitted to', () => {
    const all = readStandingMessages();
    const hand = all.filter(({ source }) => source === 'coders');
    const others = all.filter((message) => !hand.includes(message));
    const standingIn = createStandingSentences(fitStanding(others, readSamples(items)), readIsBare());
    const share = (stands: boolean) => {
      const of = hand.filter(({ standing }) => (standing !== '') === stands);
      return of.filter(({ text }) => standingIn(text).length > 0).length / of.length;
    };
    expect(share(true)).toBeGreaterThan(0.75);
    expect(share(false)).toBeLessThan(0.12);
  });
});

describe('a wish about form', () => {
  it('a wish about form is heard where it comes without a complaint, after an answer that it has nothing to do with', () => {
    const { heard, takenForSatisfied } = measureWishes(readReader());
    expect(heard).toBeGreaterThan(0.65);
    expect(takenForSatisfied).toBeLessThan(0.12);
  });
});

describe('evaluating the judge', () => {
  const calibration = items.filter(({ split }) => split === 'calibration');

  it('gives a row for each way of judging', () => {
    const dev = items.filter(({ split }, at) => split === 'dev' && at % 5 === 0);
    const seen: number[] = [];
    const rows = evaluateJudge({ items: dev, onProgress: (done) => seen.push(done) });
    expect(rows.map(({ name }) => name)).toEqual(['majority baseline', 'without votes']);
    expect(rows[0]?.balancedAccuracy).toBeCloseTo(1 / 3);
    expect(seen.at(-1)).toBe(dev.length);
  });

  it('finds that words say more than nothing', () => {
    const [, plain] = evaluateJudge({ items: calibration });
    const [, read] = evaluateJudge({ items: calibration, reader: readReader() });
    expect(read?.balancedAccuracy).toBeGreaterThan((plain?.balancedAccuracy ?? 1) + 0.1);
  });

  it('finds that injected text does not turn what a tool says in its fields', () => {
    const injected = items.filter(({ tags, split }) => split === 'dev' && tags.includes('injection'));
    const rows = evaluateJudge({ items: injected });
    expect(rows.find(({ name }) => name === 'without votes')?.injectionFlipRate).toBe(0);
  });
});
