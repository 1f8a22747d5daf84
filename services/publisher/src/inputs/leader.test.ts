// One policy's leader without a broker: when it has begun, when it ends, and how often it tries.
import { BacktalkError } from '@backtalk/kit';
import { FakeClock, until } from '@backtalk/kit/testing';
import { expect, it } from 'vitest';
import { Leader } from './leadership.js';
import type { Retirement } from './retirement.js';
import type { ReleaseParts } from './swap.js';
import type { TrainedFacts } from './trained-facts.js';

const nothing = () => Promise.resolve();
const never = () => new Promise<void>(() => undefined);

interface Works {
  readonly reload?: () => Promise<{ readonly sequence: number }>;
  readonly decide?: () => Promise<void>;
  readonly ask?: () => Promise<void>;
}

function leaderOf({ reload = () => Promise.resolve({ sequence: 1 }), decide = nothing, ask = nothing }: Works) {
  const clock = new FakeClock();
  const failures: string[] = [];
  const parts = {
    policy: 'p',
    chain: { reload, follow: nothing },
    routing: { converge: nothing, route: nothing },
    events: { workFailed: (_: string, work: string) => failures.push(work) },
    clock,
  };
  const leader = new Leader(
    parts as unknown as ReleaseParts,
    { start: nothing, decideUpTo: decide } as unknown as TrainedFacts,
    { sweep: nothing } as unknown as Retirement,
    { askAhead: ask },
    1_000,
    () => undefined,
  );
  return { leader, clock, failures };
}

it('a leader has begun when it has read what others decided, anew each time that it leads', async () => {
  let read: () => void = () => undefined;
  const reload = () =>
    new Promise<{ sequence: number }>((resolve) => {
      read = () => {
        resolve({ sequence: 1 });
      };
    });
  const { leader } = leaderOf({ reload });
  for (const _ of ['first', 'again']) {
    const losing = new AbortController();
    const led = leader.lead(losing.signal);
    expect(leader.hasBegun).toBe(false);
    read();
    await until(() => leader.hasBegun, { what: 'The leader to begin' });
    losing.abort();
    await led;
  }
});

it.each<[string, Works]>([
  ['a version is being decided', { decide: never }],
  ['questions are asked ahead', { ask: never }],
])('a leader that loses the lease ends at once although %s, and calls that no failure', async (_, works) => {
  let asked = 0;
  const ask = () => {
    asked += 1;
    return (works.ask ?? nothing)();
  };
  const { leader, failures } = leaderOf({ ...works, ask });
  const losing = new AbortController();
  const led = leader.lead(losing.signal);
  await until(() => asked > 0, { what: 'The leader to be at work' });
  losing.abort();
  await led;
  expect(failures).toEqual([]);
});

it('what cannot be decided is tried less and less often, and every half minute at least', async () => {
  let tries = 0;
  const decide = () => {
    tries += 1;
    return Promise.reject(new BacktalkError({ code: 'loaders_away', status: 503, retry: 'later', message: 'None.' }));
  };
  const { leader, clock } = leaderOf({ decide });
  const losing = new AbortController();
  const led = leader.lead(losing.signal);
  await until(() => tries > 0, { what: 'The first try' });
  await clock.advance(60_000);
  expect(tries).toBeLessThan(15);
  const before = tries;
  await clock.advance(61_000);
  expect(tries).toBeGreaterThan(before);
  losing.abort();
  await led;
});
