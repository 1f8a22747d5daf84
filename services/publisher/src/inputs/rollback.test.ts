import { until } from '@backtalk/kit/testing';
import { describe, expect, it } from 'vitest';
import { publisherErrors } from '../errors.js';
import { policyOf } from '../testing/policy-parts.js';
import { controlCalls } from './control.js';
import { rollBackFrom } from './rollback.js';
import type { ReleaseParts } from './swap.js';

const evaluating = { pools: ['evaluation'], versions: ['p-v0', 'p-v1', 'p-v2'] };

it.each([
  ['no engine that serves can load', [evaluating, { pools: ['serving'], versions: ['p-v0', 'p-v2'] }]],
  ['no engine that serves is ready for', [evaluating]],
])('a rollback to a version that %s burns nothing', async (_, engines) => {
  const { parts, done } = policyOf(engines);
  await expect(rollBackFrom(parts, 'p-v2', 'test')).rejects.toMatchObject({ code: 'cannot_answer' });
  expect(done).toEqual([]);
});

it('a rollback to a version that one engine holds which serves burns the one that answers', async () => {
  const { parts, done, kept } = policyOf([evaluating, { pools: ['serving'], versions: ['p-v0', 'p-v1', 'p-v2'] }]);
  expect(await rollBackFrom(parts, 'p-v2', 'test')).toMatchObject({ to: 'p-v1', burned: ['p-v2'], untold: false });
  expect(done).toEqual(['p-v2 STAGE_BURNED']);
  expect(kept).toEqual(['p-v1 until p-v2 STAGE_BURNED']);
});

it('a rollback waits some seconds, and no longer, for an engine that lacks the version which another holds', async () => {
  const slow = { pools: ['serving'], versions: ['p-v0', 'p-v2'], loads: () => new Promise<void>(() => undefined) };
  const { parts, clock, done } = policyOf([{ pools: ['serving'], versions: ['p-v0', 'p-v1', 'p-v2'] }, slow]);
  const back = rollBackFrom(parts, 'p-v2', 'test');
  await until(() => clock.waiting > 0, { what: 'The rollback to wait' });
  expect(done).toEqual([]);
  await clock.advance(10_000);
  expect(await back).toMatchObject({ to: 'p-v1', burned: ['p-v2'] });
});

it('a rollback that its caller has given up burns nothing', async () => {
  const caller = new AbortController();
  const loads = () => {
    caller.abort();
    return Promise.resolve();
  };
  const { parts, done } = policyOf([{ pools: ['serving'], versions: ['p-v0', 'p-v2'], loads }]);
  await expect(ask(parts, true, '', '', caller.signal)).rejects.toThrow('aborted');
  expect(done).toEqual([]);
});

const ask = (parts: ReleaseParts, hasBegun: boolean, to = '', from = '', signal = new AbortController().signal) => {
  const trained = { isUnreadable: () => Promise.resolve(false) };
  const calls = controlCalls([{ parts, leader: { hasBegun }, trained }], () => true);
  const request = { policy: 'p', why: 'worse', to, forgotten: [], undone: false, from };
  return calls.rollback(request, { signal } as Parameters<typeof calls.rollback>[1]);
};

describe('a publisher that takes over', () => {
  const serving = { pools: ['serving'], versions: ['p-v0', 'p-v1', 'p-v2'] };
  it.each([
    ['nothing', []],
    ['no more than it saw when it led before', ['p-v0', 'p-v1']],
  ])('a publisher that takes over goes back from the version that answers when it has read %s yet', async (_, read) => {
    const { parts, done, readUntil } = policyOf([serving]);
    readUntil(read);
    expect(await ask(parts, false)).toMatchObject({ from: 'p-v2', to: 'p-v1', burned: ['p-v2'] });
    expect(done).toEqual(['p-v2 STAGE_BURNED']);
  });

  it('a rollback leads to the version that is named, although another took its place since the publisher looked', async () => {
    const { parts, readUntil } = policyOf([serving]);
    readUntil(['p-v0', 'p-v1']);
    expect(await ask(parts, true, 'p-v1')).toMatchObject({ from: 'p-v2', to: 'p-v1', burned: ['p-v2'] });
  });

  it('a rollback that is asked for again burns no more than the version that it names', async () => {
    const { parts, done } = policyOf([serving]);
    expect(await ask(parts, true, '', 'p-v2')).toMatchObject({ from: 'p-v2', to: 'p-v1', burned: ['p-v2'] });
    expect(await ask(parts, true, '', 'p-v2')).toMatchObject({ from: 'p-v2', to: 'p-v1', burned: [] });
    expect(done).toEqual(['p-v2 STAGE_BURNED']);
    await expect(ask(parts, true, '', 'p-v0')).rejects.toMatchObject({ code: 'stable_changed' });
  });

  it('a publisher that leads no more when the version to go back to is loaded burns nothing', async () => {
    const { parts, done } = policyOf([serving]);
    const followed = Object.assign(parts, {
      assertLeading: () => {
        throw publisherErrors.notLeading();
      },
    });
    await expect(ask(followed, true)).rejects.toMatchObject({ code: 'not_leading' });
    expect(done).toEqual([]);
  });

  it('a rollback is answered when its version is burned, though another publisher is to write the routes', async () => {
    const { parts } = policyOf([serving]);
    const routing = { route: () => Promise.reject(publisherErrors.notLeading()) };
    const answer = await ask(Object.assign(parts, { routing }), true);
    expect(answer).toMatchObject({ to: 'p-v1', burned: ['p-v2'], untold: true });
  });
});
