import { describe, expect, it } from 'vitest';
import { createReader, logSoftmax, wordLikelihoods, type Weighing, type WordWeights } from './reader.js';
import { featuresOf, type Read } from './features.js';
import type { NextState } from '../next-state.js';
import { combine } from '../verdict.js';

const read = (text: string, role: NextState['role'] = 'user'): Read => ({
  next: { role, text, userText: '', toolResults: [] },
  question: 'How tall is it?',
  answer: '300 metres.',
});
const featuresIn = (text: string, role: NextState['role'] = 'user') => featuresOf(read(text, role));

describe('features of a next state', () => {
  it('counts beginnings of words, pairs of them, and the words at the head of a sentence', () => {
    const found = featuresIn('That isn\u2019t helpful. Great answers!');
    for (const name of ['that', 'is not', 'answe', 'great answe', '>s great', '>1 that']) expect(found).toContain(name);
  });

  it('tells what is asked again, and a number that is new beside one of the answer', () => {
    expect(featuresIn('How tall is it, I asked?')).toContain('=question in next 6');
    expect(featuresIn('Is it blue?')).toContain('=question in next 1');
    expect(featuresIn('It has 324 metres.')).toContain('=number new beside');
    expect(featuresIn('300 it is.')).toContain('=number of answer');
  });

  it('counts neither what a person quotes nor, as beginnings, what a tool prints further down', () => {
    expect(featuresIn('Thanks! Now: "this is useless, wrong, redo it at once"')).not.toContain('usele');
    expect(featuresIn(`${'x '.repeat(100)} useless`, 'tool')).not.toContain('usele');
  });

  it('tells a question about the answer from one about something else', () => {
    expect(featuresIn('How many metres wide?')).toContain('_asks near');
    expect(featuresIn('Who painted the ceiling?')).toContain('_asks apart');
  });
});

describe('what words say', () => {
  const weights: WordWeights = { always: [0, 0.5, 0], features: { good: [2, 0, -1], bad: [-1, 0, 2] } };

  it('makes a probability for each verdict of the features that have weights', () => {
    const found = wordLikelihoods(weights, new Set(['good', 'zebra', 'constructor']));
    expect(found.satisfied).toBeGreaterThan(found.unrelated);
    expect(found.unrelated).toBeGreaterThan(found.correction);
    expect([found.satisfied, found.unrelated, found.correction]).toEqual(logSoftmax([2, 0.5, -1]));
    const sum = Object.values(found).reduce((total, logprob) => total + Math.exp(logprob), 0);
    expect(sum).toBeCloseTo(1);
  });

  it('falls back on what is likely beforehand where no word is known', () => {
    expect(wordLikelihoods(weights, new Set(['zebra'])).unrelated).toBeCloseTo(logSoftmax([0, 0.5, 0])[1] ?? 0);
  });
});

describe('the verdict of words', () => {
  const table: WordWeights = { always: [0, 0, 0], features: { usele: [-2, -1, 0] } };
  const verdictWith = (correction: number) => {
    const weights: Weighing = { words: 1, satisfied: 0, correction };
    const reader = createReader({ user: table, tool: table }, { user: weights, tool: weights });
    return reader.read(read('useless'));
  };

  it('judges by words where there is no vote', () => {
    const reading = verdictWith(0);
    expect(combine([], [], reading)).toEqual({ verdict: -1, confidence: 1, restsOn: 'evidence' });
    expect(reading.words).toEqual({ name: 'words', verdict: -1, detail: 'learned' });
  });

  it('a correction in doubt is neutral, and the record has what the words say', () => {
    const reading = verdictWith(-3);
    expect(reading.verdict).toBe(0);
    expect(reading.words.verdict).toBe(-1);
    const { satisfied, unrelated, correction } = reading.odds;
    expect(Math.exp(satisfied) + Math.exp(unrelated) + Math.exp(correction)).toBeCloseTo(1);
    expect(correction).toBeLessThan(unrelated);
  });
});
