import { describe, expect, it } from 'vitest';
import { Outage } from './vote-caster.js';

const cast = (outage: Outage, votes: number) => {
  for (let vote = 0; vote < votes; vote += 1) outage.answered(`other ${vote}`);
};

describe('an engine that refuses', () => {
  it('the turn is to blame once it is refused again while votes on others are cast', () => {
    const outage = new Outage();
    cast(outage, 5);
    expect(outage.passesBy('flagged')).toBe(false);
    cast(outage, 2);
    expect(outage.passesBy('flagged')).toBe(false);
    cast(outage, 1);
    expect(outage.passesBy('flagged')).toBe(true);
  });

  it('a turn that was voted on since is not to blame for what it meets later', () => {
    const outage = new Outage();
    expect(outage.passesBy('t')).toBe(false);
    for (let vote = 0; vote < 3; vote += 1) outage.answered('t');
    expect(outage.passesBy('t')).toBe(false);
  });

  it('no turn is to blame while nothing is voted on', () => {
    const outage = new Outage();
    for (let times = 0; times < 10; times += 1)
      for (const turn of ['a', 'b', 'c']) expect(outage.passesBy(turn)).toBe(false);
  });

  it('the newest of many refused turns are remembered', () => {
    const outage = new Outage();
    for (let turn = 0; turn < 1_000; turn += 1) outage.passesBy(`turn ${turn}`);
    cast(outage, 3);
    expect(outage.passesBy('turn 999')).toBe(true);
    expect(outage.passesBy('turn 0')).toBe(false);
  });
});
