import { describe, expect, it } from 'vitest';
import { consentAfter, ownConsent, trainsBy, type Before } from './consent.js';

const silent = { train: true, source: 'default' };
const saidYes = { train: true, source: 'request' };

function after(before: Partial<Before>, own = silent) {
  return consentAfter(own, { parent: 'yes', session: undefined, saidNo: false, ...before });
}

describe('consentAfter', () => {
  it('a "no" holds for what follows it, until the person says yes', () => {
    expect(after({ parent: 'no' })).toEqual({ train: false, source: 'session' });
    expect(after({ session: 'no' })).toEqual({ train: false, source: 'session' });
    expect(after({ parent: 'no', session: 'no' }, saidYes)).toEqual(saidYes);
    expect(after({ parent: 'unknown' })).toEqual({ train: false, source: 'unknown' });
  });

  it('what cannot be found counts as following where the person said no somewhere, and as nothing elsewhere', () => {
    expect(after({ parent: undefined, saidNo: true })).toEqual({ train: false, source: 'unknown' });
    expect(after({ parent: undefined, saidNo: false })).toEqual(silent);
    expect(after({ parent: 'none', saidNo: true })).toEqual(silent);
    expect(after({ parent: undefined, saidNo: true }, saidYes)).toEqual(saidYes);
  });
});

describe('ownConsent', () => {
  it('reads a refusal whatever its source is called', () => {
    expect(ownConsent({ consent: { train: false, source: '' } })).toEqual({ train: false, source: 'request' });
    expect(ownConsent({ consent: { train: false, source: 'key' } })).toEqual({ train: false, source: 'key' });
    expect(ownConsent({})).toEqual(silent);
    expect(trainsBy({ train: false, source: 'unknown' })).toBe('unknown');
  });
});
