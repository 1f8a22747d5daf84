import { describe, expect, it } from 'vitest';
import { consentOf } from './consent.js';

const willing = { keyTrains: true, requestHeader: undefined, sessionTrains: true };

describe('consentOf', () => {
  it('is given when nobody objects', () => {
    expect(consentOf(willing)).toEqual({ train: true, source: 'default' });
    expect(consentOf({ ...willing, requestHeader: 'on' })).toEqual({ train: true, source: 'default' });
  });

  it('is refused by a key, a request, or the session so far, and says by whom', () => {
    expect(consentOf({ ...willing, keyTrains: false, requestHeader: 'on' })).toEqual({ train: false, source: 'key' });
    expect(consentOf({ ...willing, requestHeader: 'Off' })).toEqual({ train: false, source: 'request' });
    expect(consentOf({ ...willing, requestHeader: 'on', sessionTrains: false })).toEqual({
      train: false,
      source: 'session',
    });
  });

  it('takes an unclear word as a no', () => {
    expect(consentOf({ ...willing, requestHeader: 'never' }).train).toBe(false);
  });
});
