import { newTrace, type FactReader, type StoredFact } from '@backtalk/kit';
import { WeightsTrained } from '@backtalk/proto/facts';
import { describe, expect, it } from 'vitest';
import { undecidedFacts } from './undecided-facts.js';

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
  return undecidedFacts({ policy, reader, isDecided: (version) => version === `${policy}-v1` }, from, to);
}

describe('versions that wait for a decision', () => {
  it('come in their order, up to the one that was delivered', async () => {
    const numbers = async (to: number | undefined) =>
      (await found([1, 2, 3, 4], 1, to)).map(({ message }) => message.version.slice(-2));
    expect(await numbers(30)).toEqual(['v2', 'v3']);
    expect(await numbers(undefined)).toEqual(['v2', 'v3', 'v4']);
  });

  it('are not taken to be none because a copy of the log is behind', async () => {
    await expect(found([1, 2], 1, 30)).rejects.toMatchObject({ code: 'not_decided', retry: 'later' });
    await expect(found([], 1, 30)).rejects.toMatchObject({ code: 'not_decided' });
    // What was read before need not be shown again.
    expect(await found([], 31, 30)).toEqual([]);
  });
});
