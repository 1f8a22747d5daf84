import type { LeaseView } from '@backtalk/kit';
import { FakeClock, silentLogger } from '@backtalk/kit/testing';
import { Metrics } from '@backtalk/kit';
import { EngineLease, Lease } from '@backtalk/proto/weights';
import { describe, expect, it } from 'vitest';
import { createEvents } from '../events.js';
import { Loaders } from './loaders.js';

/** Leases as the broker has them: `say` renews a loader's lease. */
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
  return new Loaders(
    view,
    'backtalk',
    1_000,
    createEvents(silentLogger, new Metrics('publisher'), ['backtalk']),
    clock,
  );
}

const names = (found: readonly { readonly instance: string }[]) => found.map(({ instance }) => instance);

describe('Loaders.leased', () => {
  it('finds all loaders once the lease of each names the version', async () => {
    const { view, say } = leasesOf('a', 'b');
    const loaders = loadersOf(view, new FakeClock());
    const known = loaders.leased(loaders.all(), 'backtalk-v1');
    say('a', 'backtalk-v1');
    say('b', 'backtalk-v1');
    expect(names(await known)).toEqual(['a', 'b']);
  });

  it('leaves out loaders whose leases do not name the version in time, because no gateway could route to them', async () => {
    const { view, say } = leasesOf('a', 'b');
    const clock = new FakeClock();
    const loaders = loadersOf(view, clock);
    const known = loaders.leased(loaders.all(), 'backtalk-v1');
    say('b', 'backtalk-v1');
    await clock.advance(2_000);
    expect(names(await known)).toEqual(['b']);
    const none = loaders.leased(loaders.all(), 'backtalk-v2');
    await clock.advance(2_000);
    expect(await none).toEqual([]);
  });
});
