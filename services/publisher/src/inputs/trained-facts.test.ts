import {
  asBacktalkError,
  defineErrors,
  newTrace,
  type FactReader,
  type ReadOptions,
  type StoredFact,
} from '@backtalk/kit';
import { WeightsTrained } from '@backtalk/proto/facts';
import { FakeClock } from '@backtalk/kit/testing';
import { describe, expect, it } from 'vitest';
import { emptyState } from '../domain/policy-state.js';
import { publisherErrors } from '../errors.js';
import { isUnreadable, TrainedFacts, undecided, undecidedFacts } from './trained-facts.js';

const thrown = defineErrors('dialects', {
  forgot: { code: 'model_not_found', status: 404, retry: 'never', message: () => 'It does not hold it.' },
  broke: { code: 'engine_failed', status: 502, retry: 'later', message: () => 'It failed.' },
  wrong: { code: 'broker_denied', status: 500, retry: 'stop', message: () => 'It may not.' },
});

describe('undecided', () => {
  it.each([
    ['a refusal', thrown.forgot({}), 'model_not_found: It does not hold it.'],
    ['a failure', thrown.broke({}), 'engine_failed: It failed.'],
    ['anything else', 'a string', 'internal'],
  ])('lets the fact wait: %s', (_, error, cause) => {
    const { code, status, retry, message } = undecided(error);
    expect({ code, status, retry }).toEqual({ code: 'not_decided', status: 503, retry: 'later' });
    expect(message).toContain(cause);
  });

  it('throws an error on as it is when the fact waits already, and when the service must end', () => {
    const waiting = publisherErrors.noLoader({ policy: 'backtalk' });
    expect(undecided(waiting)).toBe(waiting);
    const wrong = thrown.wrong({});
    expect(undecided(wrong)).toBe(wrong);
  });
});

const policy = 'backtalk';

function trained(number: number): StoredFact<'weightsTrained'> {
  const message = WeightsTrained.fromPartial({ policy, version: `${policy}-v${String(number)}` });
  const place = { sequence: 10 * number, timeMs: 0, headers: {}, trace: newTrace(), subject: '' };
  return { name: 'weightsTrained', message, ...place };
}

function found(numbers: readonly number[], from: number, to: number | undefined) {
  const facts = numbers.map((number) => trained(number)).filter(({ sequence }) => sequence >= from);
  const read = () =>
    (async function* () {
      yield* await Promise.resolve(facts);
    })();
  const reader = { read } as unknown as Pick<FactReader, 'read'>;
  return undecidedFacts(
    reader,
    policy,
    (version) => version === `${policy}-v1`,
    from,
    to,
    () => undefined,
  );
}

describe('undecidedFacts', () => {
  it('gives undecided versions in their order, up to the one that was delivered', async () => {
    const numbers = async (to: number | undefined) =>
      (await found([1, 2, 3, 4], 1, to)).map(({ message }) => message.version.slice(-2));
    expect(await numbers(30)).toEqual(['v2', 'v3']);
    expect(await numbers(undefined)).toEqual(['v2', 'v3', 'v4']);
  });

  it('refuses to find none where a copy of the log is behind', async () => {
    await expect(found([1, 2], 1, 30)).rejects.toMatchObject({ code: 'not_decided', retry: 'later' });
    await expect(found([], 1, 30)).rejects.toMatchObject({ code: 'not_decided' });
    // What was read before need not be read again.
    expect(await found([], 31, 30)).toEqual([]);
  });
});

/** In the order of the log; of these, the unreadable ones are negative. */
function withLost(numbers: readonly number[]): Pick<FactReader, 'read'> {
  const read = (_: unknown, { onUnreadable }: ReadOptions<'weightsTrained'>) =>
    (async function* () {
      for (const number of numbers) {
        if (number > 0) yield await Promise.resolve(trained(number));
        else onUnreadable?.(asBacktalkError(thrown.broke({})), -10 * number, 'weightsTrained');
      }
    })();
  return { read } as unknown as Pick<FactReader, 'read'>;
}

describe('a version whose fact is lost', () => {
  it('a version whose fact is lost keeps no later one from being decided, and is said', async () => {
    const lost: number[] = [];
    const onUnreadable = (_: unknown, sequence: number) => lost.push(sequence);
    const found = await undecidedFacts(withLost([1, -2, 3]), policy, () => false, 1, undefined, onUnreadable);
    expect([found.map(({ sequence }) => sequence), lost]).toEqual([[10, 30], [20]]);
  });

  it.each([
    ['the newest one, by a name that no other has', [1, -2], 'backtalk-v2', true],
    ['one that can be read', [1, -2], 'backtalk-v1', false],
    ['one that training went on after', [1, -2, 3], 'backtalk-v4', false],
    ['any, where all can be read', [1], 'backtalk-v2', false],
  ])('a version is taken for lost: %s', async (_, numbers, version, expected) => {
    expect(await isUnreadable(withLost(numbers), policy, version)).toBe(expected);
  });
});

describe('a version that cannot be decided', () => {
  it('a version that cannot be decided is tried in full less and less often, whoever asks', async () => {
    const clock = new FakeClock();
    let tries = 0;
    const decide = () => {
      tries += 1;
      return tries < 5 ? Promise.reject(thrown.broke({})) : Promise.resolve();
    };
    const read = () =>
      (async function* () {
        yield await Promise.resolve(trained(1));
      })();
    const context = { clock, reader: { read } } as unknown as ConstructorParameters<typeof TrainedFacts>[0];
    const parts = { policy, chain: { state: emptyState(policy) }, swap: { decide } };
    const facts = new TrainedFacts(context, parts as unknown as ConstructorParameters<typeof TrainedFacts>[1]);
    for (let asked = 0; asked < 40; asked += 1) {
      await expect(facts.decideUpTo(undefined)).rejects.toMatchObject({ code: 'engine_failed' });
      await clock.advance(100);
    }
    expect(tries).toBeGreaterThan(1);
    expect(tries).toBeLessThan(5);
    await clock.advance(30_000);
    while (tries < 5) await facts.decideUpTo(undefined).catch(() => clock.advance(30_000));
    await facts.decideUpTo(undefined);
  });
});
