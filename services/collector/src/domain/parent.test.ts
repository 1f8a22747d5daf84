import { describe, expect, it } from 'vitest';
import { TurnOpened } from '@backtalk/proto/facts';
import { readMessages } from './messages.js';
import { findParent, goesOnFrom, type Candidate } from './parent.js';

function candidate(turn: string, fields: Partial<Candidate> = {}): Candidate {
  const place = { session: `session of ${turn}`, policy: 'backtalk' };
  return { turn, ...place, earlierAnswers: [], question: '', sequence: 1, continuedBy: '', ...fields };
}

const request = (turn: string, answerKeys: string[], questionKeys: string[] = []) => ({
  turn,
  answerKeys,
  questionKeys,
  policy: 'backtalk',
  sessions: [] as string[],
});
const by = (table: Record<string, Candidate[]>) => (key: string) => table[key] ?? [];

describe('findParent', () => {
  it('finds the turn that gave the latest answer in the request', () => {
    const link = findParent(
      request('t3', ['a', 'b']),
      by({ a: [candidate('t1')], b: [candidate('t2', { earlierAnswers: ['a'] })] }),
    );
    expect(link).toEqual({ turn: 't2', answerIndex: 1, branch: false });
  });

  it('examples that come with each request are no answer that it continues', () => {
    const asked = { earlierAnswers: ['yes', 'no'], question: 'q1' };
    const examples = (questions: string[]) =>
      findParent(request('t2', ['yes', 'no'], questions), by({ no: [candidate('t1', asked)] }))?.turn;
    expect(examples(['example', 'q2'])).toBeUndefined();
    // A window that has moved on has the same question before the answer; one of before knows none.
    expect(examples(['q1', 'q2'])).toBe('t1');
    expect(examples([])).toBe('t1');
    // A window that has moved on, of questions that are wrapped anew each time.
    const third = candidate('t1', { earlierAnswers: ['a', 'yes'], question: 'q1' });
    expect(findParent(request('t2', ['yes', 'no'], ['wrapped', 'q2']), by({ no: [third] }))?.turn).toBe('t1');
    const went = { ...asked, earlierAnswers: ['yes'] };
    expect(findParent(request('t2', ['yes', 'no'], ['wrapped', 'q2']), by({ no: [candidate('t1', went)] }))?.turn).toBe(
      't1',
    );
  });

  it('makes a retry or regeneration a sibling: it lacks the answer, so it continues what came before', () => {
    const table = by({ a: [candidate('t1', { continuedBy: 't2' })], b: [candidate('t2')] });
    expect(findParent(request('t3', ['a']), table)).toEqual({ turn: 't1', answerIndex: 0, branch: true });
  });

  it('a request that is delivered twice is no branch of itself', () => {
    expect(findParent(request('t2', ['a']), by({ a: [candidate('t1', { continuedBy: 't2' })] }))?.branch).toBe(false);
  });

  it('settles ties by equal earlier answers, then by not yet continued, then by newest', () => {
    const near = candidate('near', { earlierAnswers: ['x', 'a'], sequence: 1 });
    const far = candidate('far', { earlierAnswers: ['y'], sequence: 9 });
    expect(findParent(request('t', ['x', 'a', 'b']), by({ b: [far, near] }))?.turn).toBe('near');
    const taken = candidate('taken', { sequence: 9, continuedBy: 'other' });
    const open = candidate('open', { sequence: 2 });
    expect(findParent(request('t', ['b']), by({ b: [taken, open] }))?.turn).toBe('open');
    expect(findParent(request('t', ['b']), by({ b: [open, candidate('newer', { sequence: 3 })] }))?.turn).toBe('newer');
  });

  it('settles ties by what was said before the answer, whatever stood further back', () => {
    const table = by({
      b: [
        candidate('near', { earlierAnswers: ['a'], question: 'other', sequence: 9 }),
        candidate('asked', { question: 'same', continuedBy: 'other' }),
        candidate('unknown', { earlierAnswers: ['a'], sequence: 4 }),
      ],
    });
    expect(findParent(request('t', ['a', 'b'], ['first', 'same', 'now']), table)?.turn).toBe('asked');
    expect(findParent(request('t', ['a', 'b'], ['first', 'unheard', 'same']), table)?.turn).toBe('near');
    expect(findParent(request('t', ['a', 'b'], ['', '', '']), table)?.turn).toBe('near');
    expect(findParent(request('t', ['c', 'a', 'b'], ['same', 'now']), table)?.turn).toBe('asked');
  });

  it('settles ties by the declared session, then by the policy that is asked, whatever was said there', () => {
    const ours = { question: 'same', earlierAnswers: ['a'], sequence: 9 };
    const table = by({
      b: [candidate('other', { ...ours, policy: 'ben' }), candidate('declared', { session: 'mine', policy: 'ben' })],
      c: [candidate('ben', { ...ours, policy: 'ben' }), candidate('near', { continuedBy: 'other' })],
    });
    const asked = (key: string) => request('t', ['a', key], ['first', 'same', 'now']);
    expect(findParent({ ...asked('b'), sessions: ['newer', 'mine'] }, table)?.turn).toBe('declared');
    expect(findParent({ ...asked('b'), sessions: ['newer'] }, table)?.turn).toBe('other');
    expect(findParent(asked('c'), table)?.turn).toBe('near');
  });

  it('a request that is delivered twice goes on from the turn that it continued', () => {
    const table = by({ a: [candidate('t1', { continuedBy: 't2', sequence: 4 }), candidate('open', { sequence: 1 })] });
    expect(findParent(request('t2', ['a']), table)).toMatchObject({ turn: 't1', branch: false });
  });

  it('passes over assistant messages that are not ours', () => {
    const link = findParent(request('t', ['ours', 'foreign']), by({ ours: [candidate('t1')] }));
    expect(link).toEqual({ turn: 't1', answerIndex: 0, branch: false });
  });

  it('finds nothing where no answer is ours', () => {
    expect(findParent(request('t', []), by({}))).toBeUndefined();
    expect(findParent(request('t', ['foreign']), by({}))).toBeUndefined();
  });
});

describe('goesOnFrom', () => {
  const earlier = TurnOpened.fromPartial({ answerKeys: ['k1'] });
  const messages = readMessages([{ role: 'user', content: ' and now? ' }]);
  const said = new Set(['and now?', 'thanks']);

  it('a request goes on from an earlier one when it has more answers and the last words of that one', () => {
    expect(goesOnFrom(earlier, messages, 2, said)).toBe(true);
    expect(goesOnFrom(earlier, messages, 1, said)).toBe(false);
    expect(goesOnFrom(earlier, messages, 2, new Set(['thanks']))).toBe(false);
    expect(goesOnFrom(earlier, [], 2, said)).toBe(false);
  });

  it('passes over requests that a client made for itself', () => {
    expect(goesOnFrom({ ...earlier, declaredTurnType: 'title' }, messages, 2, said)).toBe(false);
  });
});
