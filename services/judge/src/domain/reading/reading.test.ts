import { describe, expect, it } from 'vitest';
import { fitPool } from '../evaluation/fit-pool.js';
import type { NextState } from '../next-state.js';
import type { Likelihoods } from '../scored/score.js';
import { combine, type CastVote, type EvidenceVote, type Reading } from '../verdict.js';
import type { Verdict } from '../verdict-value.js';
import { featuresOf } from './features.js';
import { pool, type PoolWeights } from './pool.js';
import { fitWordModel } from './word-model.js';

const said = (text: string, role: NextState['role'] = 'user') =>
  featuresOf({
    next: { role, text, userText: '', toolResults: [] },
    question: 'How tall is it?',
    answer: '300 metres.',
  });

const leaning = (verdict: Verdict, by = 1): Likelihoods => ({
  satisfied: verdict === 1 ? 0 : -by,
  unrelated: verdict === 0 ? 0 : -by,
  correction: verdict === -1 ? 0 : -by,
});

describe('what is counted', () => {
  it('is the beginnings of words, pairs of them, and opinions with their negation', () => {
    const found = said('That isn\u2019t helpful. Great answers!');
    for (const name of ['that', 'is not', 'answe', 'great answe', '_blames', '_praises']) expect(found).toContain(name);
  });

  it('is not what a person quotes, nor what a tool prints further down', () => {
    expect(said('Thanks! Now: "this is useless, wrong, redo it at once"')).not.toContain('usele');
    expect(said(`${'x '.repeat(100)} useless`, 'tool')).not.toContain('usele');
  });

  it('tells a question about the answer from one about something else', () => {
    expect(said('How many metres wide?')).toContain('_asks near');
    expect(said('Who painted the ceiling?')).toContain('_asks apart');
  });
});

describe('words', () => {
  const examples = (['good', 'fine'] as const).flatMap((word) => [
    { features: said(`${word} work`), label: 1 as const },
    { features: said(`not ${word} work`), label: -1 as const },
    { features: said(`rain and ${word} snow`), label: 0 as const },
  ]);

  it('are learned from labelled examples, the same each time, as probabilities', () => {
    const found = fitWordModel(examples).logprobs(said('rain and sun'));
    expect(fitWordModel(examples).logprobs(said('rain and sun'))).toEqual(found);
    expect(found.unrelated).toBeGreaterThan(Math.max(found.satisfied, found.correction));
    const sum = Object.values(found).reduce((total: number, logprob: number) => total + Math.exp(logprob), 0);
    expect(sum).toBeCloseTo(1);
  });

  it('say little of what was never seen', () => {
    const { satisfied, unrelated, correction } = fitWordModel(examples).logprobs(new Set(['zebra']));
    expect(Math.max(satisfied, unrelated, correction) - Math.min(satisfied, unrelated, correction)).toBeLessThan(0.5);
  });
});

const equal: PoolWeights = { votes: 1, words: 1, evidence: 1, satisfied: 0, correction: 0 };

describe('weighing', () => {
  it('lets several sources outweigh one', () => {
    expect(pool(equal, { votes: leaning(1), words: leaning(1), evidence: -1 })).toBe(1);
    expect(pool(equal, { votes: leaning(1, 0.5), words: leaning(0, 0.2), evidence: -1 })).toBe(-1);
  });

  it('gives the source that is right its weight', () => {
    const items = ([1, 0, -1] as const).flatMap((label) =>
      ([1, 0, -1] as const).map((other) => ({
        heard: { votes: leaning(label), words: leaning(other), evidence: undefined },
        label,
      })),
    );
    const fitted = fitPool(items);
    expect(fitted.votes).toBeGreaterThan(1);
    expect(Math.abs(fitted.words)).toBeLessThan(0.2);
  });
});

describe('a verdict with a reading', () => {
  const vote = (verdict: Verdict): CastVote => ({
    valid: true,
    verdict,
    score: verdict,
    likelihoods: leaning(verdict),
    hint: '',
    seed: 1,
  });
  const piece = (name: EvidenceVote['name'], verdict: Verdict): EvidenceVote => ({ name, verdict, detail: '' });
  const reading = (words: Verdict, evidenceDecides = false): Reading => ({
    words: leaning(words),
    withVotes: equal,
    withoutVotes: { ...equal, votes: 0 },
    evidenceDecides,
  });

  it('rests on votes where they are behind it, on evidence elsewhere', () => {
    expect(combine([], [vote(1), vote(1), vote(0)], reading(1))).toMatchObject({ verdict: 1, restsOn: 'votes' });
    expect(combine([piece('wording', -1)], [vote(0)], reading(-1))).toMatchObject({ verdict: -1, restsOn: 'evidence' });
    expect(combine([], [], reading(-1))).toEqual({ verdict: -1, confidence: 1, restsOn: 'evidence' });
  });

  it('is that of a tool\u2019s fields, whatever its words and the votes say', () => {
    expect(combine([piece('exit_code', -1)], [vote(1), vote(1)], reading(1, true)).verdict).toBe(-1);
  });

  it('takes what the words say as no evidence of its own', () => {
    expect(combine([piece('words', 1)], [vote(-1)], undefined)).toMatchObject({ verdict: -1, restsOn: 'votes' });
  });
});
