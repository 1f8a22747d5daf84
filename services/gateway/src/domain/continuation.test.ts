import { describe, expect, it } from 'vitest';
import { keysToLookUp, likelyParent, type RememberedTurn } from './continuation.js';

function turn(name: string, earlier: readonly string[] = [], question = ''): RememberedTurn {
  return {
    turn: name,
    session: `s-${name}`,
    policy: 'backtalk',
    train: true,
    earlier,
    question,
    conversation: { messages: 1, digest: '', depth: 0 },
  };
}

function parent(
  keys: readonly string[],
  known: Record<string, readonly RememberedTurn[]>,
  questionKeys: readonly string[] = [],
): string | undefined {
  const looked = keysToLookUp(keys);
  return likelyParent(
    { policy: 'backtalk', session: undefined, answerKeys: keys, questionKeys },
    looked,
    looked.map((key) => known[key] ?? []),
  )?.turn;
}

describe('likelyParent', () => {
  it('the likely parent is the turn that gave the newest answer that is known', () => {
    expect(parent(['a', 'b'], { a: [turn('first')], b: [turn('second', ['a'])] })).toBe('second');
    expect(parent(['a', 'unknown'], { a: [turn('first')] })).toBe('first');
  });

  it('examples that come with each request name no parent', () => {
    const known = { no: [turn('first', ['yes', 'no'], 'q1')] };
    expect(parent(['yes', 'no'], known, ['example', 'q2'])).toBeUndefined();
    expect(parent(['yes', 'no'], known, ['q1', 'q2'])).toBe('first');
    const window = { no: [turn('third', ['a', 'yes'], 'q1')] };
    expect(parent(['yes', 'no'], window, ['wrapped', 'q2'])).toBe('third');
  });

  it('finds no parent when no answer is known, or there is none', () => {
    expect(parent(['a'], {})).toBeUndefined();
    expect(parent([], { a: [turn('first')] })).toBeUndefined();
    expect(parent([''], { '': [turn('silent')] })).toBeUndefined();
  });

  it('prefers, of turns with the same answer, the one with more equal earlier answers, then the newest', () => {
    const known = {
      ok: [turn('newest', ['x']), turn('newer', ['a']), turn('fitting', ['z', 'a']), turn('old', ['a'])],
    };
    expect(parent(['z', 'a', 'ok'], known)).toBe('fitting');
    expect(parent(['y', 'a', 'ok'], known)).toBe('newer');
    expect(parent(['ok'], known)).toBe('newest');
  });

  it('prefers, of turns with the same answer, the one that was asked the same, whatever stood before', () => {
    const known = { ok: [turn('newest', ['a'], 'other'), turn('asked', [], 'same'), turn('older', ['b'])] };
    expect(parent(['a', 'ok'], known, ['first', 'same', 'now'])).toBe('asked');
    expect(parent(['a', 'ok'], known, ['first', 'new', 'same'])).toBe('newest');
    expect(parent(['b', 'ok'], known, ['', '', ''])).toBe('older');
    // Of long conversations only the newest questions are there.
    expect(parent(['c', 'd', 'a', 'ok'], known, ['same', 'now'])).toBe('asked');
  });

  it('prefers, of turns with the same answer, one of the declared session, then one of the policy that is asked', () => {
    const asked = { question: 'same', earlier: ['a'] };
    const declared = { ...turn('declared'), policy: 'ben' };
    const near = turn('near');
    const newest = { ...turn('newest'), ...asked, policy: 'ben' };
    const from = (session: string | undefined) =>
      likelyParent(
        { policy: 'backtalk', session, answerKeys: ['a', 'ok'], questionKeys: ['first', 'same', 'now'] },
        ['ok'],
        [[newest, near, declared]],
      )?.turn;
    expect(from('s-declared')).toBe('declared');
    expect(from('another')).toBe('near');
    expect(from(undefined)).toBe('near');
  });

  it('looks only at the last answers', () => {
    expect(keysToLookUp(['1', '2', '', '3', '3', '4', '5'])).toEqual(['5', '4', '3']);
  });
});
