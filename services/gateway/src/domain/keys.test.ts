import { createHash } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { callerOf, keylessGrant, reachedLimit, secondsToNextMinute } from './caller.js';
import { grantOf, hashOfHeader, keysFile } from './keys.js';

const hash = createHash('sha256').update('sk-one').digest('hex');

describe('keys', () => {
  it('keys are known by their hash alone', () => {
    const { keys } = keysFile.parse({ keys: [{ sha256: hash, tenant: 'acme', user: 'ann' }] });
    const records = new Map(keys.map(({ sha256, ...grant }) => [sha256, { hash: sha256, grant }]));
    expect(hashOfHeader('Bearer sk-one')).toBe(hash);
    expect(grantOf(records, hash)).toMatchObject({ tenant: 'acme', user: 'ann', train: true, limits: {} });
    expect(grantOf(records, createHash('sha256').update('sk-two').digest('hex'))).toBeUndefined();
  });

  it.each([undefined, '', 'sk-one', 'Basic abc', 'Bearer ', `Bearer ${'x'.repeat(600)}`])(
    'finds no keys in %j',
    (header) => {
      expect(hashOfHeader(header)).toBeUndefined();
    },
  );

  it('refuses a file that holds a key in clear', () => {
    expect(keysFile.safeParse({ keys: [{ sha256: 'sk-one' }] }).success).toBe(false);
  });
});

describe('callerOf', () => {
  const shared = { ...keylessGrant, tenant: 'acme', user: 'app', acceptsUserField: true };

  it('uses the user field only where the key allows it', () => {
    const app = callerOf('s', 'k', shared, undefined).user;
    expect(callerOf('s', 'k', shared, 'ann').user).not.toBe(app);
    expect(callerOf('s', 'k', { ...shared, acceptsUserField: false }, 'ann').user).toBe(app);
  });

  it('keeps equal names of two tenants apart', () => {
    const here = callerOf('s', 'k', shared, 'ann');
    const there = callerOf('s', 'k', { ...shared, tenant: 'other' }, 'ann');
    expect(here.user).not.toBe(there.user);
    expect(here.answerSecret).not.toBe(there.answerSecret);
  });
});

describe('limits', () => {
  it('a limit is reached by one request too many, or when the tokens are used up', () => {
    expect(reachedLimit({ requestsPerMinute: 2 }, { requests: 2, tokens: 0 })).toBeUndefined();
    expect(reachedLimit({ requestsPerMinute: 2 }, { requests: 3, tokens: 0 })).toContain('2 requests');
    expect(reachedLimit({ tokensPerMinute: 10 }, { requests: 1, tokens: 10 })).toContain('10 tokens');
    expect(secondsToNextMinute(59_500)).toBe(1);
  });
});
