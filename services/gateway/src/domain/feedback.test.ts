import { describe, expect, it } from 'vitest';
import { feedbackFact, readFeedback } from './feedback.js';

const yes = { train: true, source: 'default' };
const of = { tenant: 't', user: 'u', policy: 'backtalk' };

describe('readFeedback', () => {
  it('takes the turn under either name, and any of score, comment and correction', () => {
    expect(readFeedback({ id: 'turn_1', score: -1 })).toMatchObject({ turn: 'turn_1', score: -1, comment: '' });
    expect(readFeedback({ turn_id: 'turn_1', comment: 'Too long.' })).toMatchObject({ score: undefined });
  });

  it.each([
    [{ score: 1 }, 'missing_required_parameter'],
    [{ turn_id: 'turn_1' }, 'missing_required_parameter'],
    [{ turn_id: 'turn_1', score: 2 }, 'invalid_value'],
    [{ turn_id: 'turn_1', score: '1' }, 'invalid_value'],
    [{ turn_id: 'turn_1', comment: 5 }, 'invalid_value'],
    [{ turn_id: 'turn_1', comment: 'x'.repeat(20_000) }, 'invalid_value'],
    [{ turn_id: 'a.b.>', score: 1 }, 'turn_not_found'],
    ['text', 'invalid_json'],
  ])('refuses %j', (body, code) => {
    expect(() => readFeedback(body)).toThrow(expect.objectContaining({ code }) as Error);
  });
});

describe('feedbackFact', () => {
  it('a feedback fact has the same digest for the same words, and tells no score from a score of zero', () => {
    const fact = (body: object) =>
      feedbackFact(readFeedback({ turn_id: 'turn_1', ...body }), of, { giver: 'u', consent: yes });
    expect(fact({ score: 0 }).digest).toBe(fact({ score: 0 }).digest);
    expect(fact({ score: 0, comment: 'a' }).digest).not.toBe(fact({ comment: 'a' }).digest);
    expect(fact({ comment: 'a' })).toMatchObject({ score: 0, hasScore: false, tenant: 't' });
  });

  it('equal words of another giver, or without consent, are another fact', () => {
    const fact = (giver: string, train: boolean) =>
      feedbackFact(readFeedback({ turn_id: 'turn_1', score: 1 }), of, { giver, consent: { train, source: 'key' } });
    const digests = [fact('u', true), fact('u', false), fact('v', true), fact('v', false)].map(({ digest }) => digest);
    expect(new Set(digests).size).toBe(4);
    expect(fact('v', false)).toMatchObject({ user: 'u', giver: 'v', consent: { train: false } });
  });
});
