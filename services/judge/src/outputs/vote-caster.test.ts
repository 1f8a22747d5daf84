import { describe, expect, it } from 'vitest';
import { Outage } from './vote-caster.js';

describe('an outage of the judge’s engines', () => {
  it('begins with the third turn in a row whose votes fail, however often each of the others is tried', () => {
    const outage = new Outage();
    for (const turn of ['a', 'a', 'a', 'b', 'b', 'a', 'b']) expect(outage.failed(turn)).toBeUndefined();
    expect(outage.failed('c')).toBe(3);
    expect(outage.failed('a')).toBe(3);
    expect(outage.failed('d')).toBe(3);
  });

  it('ends with a vote that is cast: then turns are to blame for their own again', () => {
    const outage = new Outage();
    for (const turn of ['a', 'b', 'c']) outage.failed(turn);
    outage.answered();
    expect(outage.failed('c')).toBeUndefined();
    expect(outage.failed('d')).toBeUndefined();
    expect(outage.failed('e')).toBe(3);
  });
});
