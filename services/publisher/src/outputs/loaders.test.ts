import type { LeaseView } from '@backtalk/kit';
import { FakeClock, silentLogger } from '@backtalk/kit/testing';
import { Metrics } from '@backtalk/kit';
import { EngineLease, Lease } from '@backtalk/proto/weights';
import { describe, expect, it } from 'vitest';
import { createEvents } from '../events.js';
import { Loaders } from './loaders.js';

/** Leases as the broker tells them: `say` is a loader's next word. */
function leasesOf(...instances: readonly string[]) {
  const versions = new Map(instances.map((instance) => [instance, ['backtalk-v0']]));
  const listeners = new Set<() => void>();
  const view: LeaseView = {
    current: () =>
      [...versions].map(([instance, held]) =>
        Lease.fromPartial({
          kind: 'loader',
          instance,
          grpcAddress: `${instance}:1`,
          engine: EngineLease.fromPartial({
            url: `http://${instance}`,
            ready: true,
            pools: ['serving'],
            versions: held,
          }),
        }),
      ),
    onChange: (fn) => {
      const tell = () => fn([]);
      listeners.add(tell);
      return () => listeners.delete(tell);
    },
    lookAgain: () => Promise.resolve(),
    stop: () => undefined,
  };
  const say = (instance: string, ...held: readonly string[]) => {
    versions.set(instance, ['backtalk-v0', ...held]);
    for (const tell of listeners) tell();
  };
  return { view, say };
}

function loadersOf(view: LeaseView, clock: FakeClock): Loaders {
  return new Loaders(view, 'backtalk', 1_000, createEvents(silentLogger, new Metrics('publisher')), clock);
}

const names = (found: readonly { readonly instance: string }[]) => found.map(({ instance }) => instance);

describe('loaders that have prepared a version', () => {
  it('are known when every one of them says so in its lease', async () => {
    const { view, say } = leasesOf('a', 'b');
    const loaders = loadersOf(view, new FakeClock());
    const known = loaders.leased(loaders.all(), 'backtalk-v1');
    say('a', 'backtalk-v1');
    say('b', 'backtalk-v1');
    expect(names(await known)).toEqual(['a', 'b']);
  });

  it('are left out when their leases do not say so in time: nobody could route to them', async () => {
    const { view, say } = leasesOf('a', 'b');
    const clock = new FakeClock();
    const loaders = loadersOf(view, clock);
    const known = loaders.leased(loaders.all(), 'backtalk-v1');
    say('b', 'backtalk-v1');
    await clock.advance(2_000);
    expect(names(await known)).toEqual(['b']);
    const nobody = loaders.leased(loaders.all(), 'backtalk-v2');
    await clock.advance(2_000);
    expect(await nobody).toEqual([]);
  });
});
