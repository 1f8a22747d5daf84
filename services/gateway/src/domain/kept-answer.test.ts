import { describe, expect, it } from 'vitest';
import { frameOf } from '../testing/engine-frames.js';
import { BodyBudget } from './body-budget.js';
import { KeptAnswer } from './kept-answer.js';

const numbers = (length: number): number[] => Array.from({ length }, () => -1);

describe('KeptAnswer', () => {
  it('ids, logprobs and words of an answer take room beside the bodies of its key', () => {
    const budget = new BodyBudget(20_000);
    const answer = new KeptAnswer(budget.room('a', 'a'));
    answer.add(frameOf({ promptIds: numbers(500) }));
    answer.add(frameOf({ ids: numbers(300), logprobs: numbers(300), content: 'word' }));
    expect(budget.room('a', 'a').mayGrow(2_000)).toBe(false);
    expect(budget.room('a', 'a').mayGrow(1_000)).toBe(true);
    expect(answer.kept()).toMatchObject({ lackedRoom: false, capture: { text: 'word' } });
  });

  it('an answer without room for its ids lets all of them go, with their room, and keeps its words', () => {
    const budget = new BodyBudget(20_000);
    const answer = new KeptAnswer(budget.room('a', 'a'));
    answer.add(frameOf({ promptIds: numbers(1_000), content: 'a ' }));
    answer.add(frameOf({ ids: numbers(300), logprobs: numbers(300), content: 'word' }));
    const ids = { promptIds: undefined, answerIds: [], logprobs: [] };
    expect(answer.kept()).toMatchObject({ lackedRoom: true, capture: { ...ids, text: 'a word' } });
    expect(budget.room('a', 'a').mayGrow(9_900)).toBe(true);
  });

  it('an answer without room for its words ends', () => {
    const answer = new KeptAnswer(new BodyBudget(20_000).room('a', 'a'));
    answer.add(frameOf({ ids: [1], content: 'x'.repeat(9_000) }));
    expect(() => {
      answer.add(frameOf({ content: 'x'.repeat(2_000) }));
    }).toThrow('bytes of requests and answers at once');
  });
});
