import { describe, expect, it } from 'vitest';
import { keyedHash, madeAtMs, newTurnId, sha256Hex } from './ids.js';

describe('ids', () => {
  it('ids are subject tokens that sort by the time of their making', () => {
    const ids = Array.from({ length: 100 }, newTurnId);
    expect(new Set(ids).size).toBe(100);
    expect(ids.toSorted()).toEqual(ids);
    for (const id of ids) expect(id).toMatch(/^turn_[0-9a-f]{32}$/);
  });

  it('ids say when they were made, and names of other kinds do not', () => {
    expect(madeAtMs('turn_018bcfe56800700080000000000000ff')).toBe(1_700_000_000_000);
    expect(['turn_a', 'turn_018bcfe56800400080000000000000ff', ''].map((id) => madeAtMs(id))).toEqual(
      Array(3).fill(undefined),
    );
  });
});

describe('hashes', () => {
  it('hashes agree with the published vectors', () => {
    // RFC 4231, test case 2, and FIPS 180-4's "abc".
    expect(keyedHash('Jefe', 'what do ya want for nothing?', 64)).toBe(
      '5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843',
    );
    expect(sha256Hex('abc')).toBe('ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad');
    expect(sha256Hex(new TextEncoder().encode('abc'))).toBe(sha256Hex('abc'));
  });

  it('hashes differ by key, so that a name cannot be guessed without it', () => {
    expect(keyedHash('one', 'user')).not.toBe(keyedHash('two', 'user'));
    expect(keyedHash('one', 'user')).toHaveLength(16);
  });
});
