import { EngineLease } from '@backtalk/proto/weights';
import { describe, expect, it } from 'vitest';
import { areFull, chooseReplica, type ReplicaRequest } from './replica-choice.js';

const engine = (url: string, changes: Partial<EngineLease> = {}) =>
  EngineLease.fromPartial({ url, pools: ['serving'], ready: true, baseModel: 'base', versions: ['p-v1'], ...changes });
const three = [engine('http://a'), engine('http://b'), engine('http://c')];

const plain: ReplicaRequest = {
  engines: three,
  version: 'p-v1',
  session: 's',
  inFlight: () => 0,
  slotsMax: 100,
  excluded: new Set<string>(),
};

function choose(changes: Partial<ReplicaRequest>): string | undefined {
  return chooseReplica({ ...plain, ...changes })?.url;
}

describe('chooseReplica', () => {
  it('gives one session the same replica, and spreads sessions', () => {
    const chosen = Array.from({ length: 300 }, (_, index) => choose({ session: `s${index}` }));
    expect(choose({ session: 's9' })).toBe(chosen[9]);
    for (const { url } of three) expect(chosen.filter((name) => name === url).length).toBeGreaterThan(50);
  });

  it('moves only the sessions of a replica that is lost', () => {
    const sessions = Array.from({ length: 100 }, (_, index) => `s${index}`);
    for (const session of sessions) {
      const before = choose({ session });
      if (before !== 'http://c') expect(choose({ session, engines: three.slice(0, 2) })).toBe(before);
    }
  });

  it('spills over when the replica carries far more than the mean', () => {
    const home = choose({});
    expect(choose({ inFlight: (url) => (url === home ? 50 : 1) })).not.toBe(home);
    expect(choose({ inFlight: (url) => (url === home ? 2 : 1) })).toBe(home);
  });

  it('fills one replica after another, each to its bound, and then none', () => {
    const load = new Map<string, number>();
    const inFlight = (url: string) => load.get(url) ?? 0;
    for (let index = 0; index < 30; index += 1) {
      const url = choose({ session: `s${index}`, inFlight, slotsMax: 10 }) ?? expect.unreachable();
      load.set(url, inFlight(url) + 1);
    }
    expect([...load.values()]).toEqual([10, 10, 10]);
    expect(choose({ inFlight, slotsMax: 10 })).toBeUndefined();
    expect(areFull({ ...plain, inFlight, slotsMax: 10 })).toBe(true);
    expect(areFull({ ...plain, inFlight, slotsMax: 11 })).toBe(false);
  });

  it('calls nobody full where nobody holds the version', () => {
    expect(areFull({ ...plain, version: 'p-v2', slotsMax: 0 })).toBe(false);
  });

  it('never chooses one that is not ready, holds another version, serves another pool, or has just failed', () => {
    const engines = [
      engine('http://a', { ready: false }),
      engine('http://b', { versions: ['p-v2'] }),
      engine('http://c', { pools: ['judge'] }),
      engine('http://d'),
    ];
    expect(choose({ engines })).toBe('http://d');
    expect(choose({ engines, excluded: new Set(['http://d']) })).toBeUndefined();
  });

  it('finds the base on every ready engine', () => {
    expect(choose({ engines: [engine('http://a', { versions: [] })], version: 'p-v0' })).toBe('http://a');
  });
});
