import { FakeClock } from '@backtalk/kit/testing';
import { WeightsStaged, WeightsStaged_Stage } from '@backtalk/proto/facts';
import { expect, it } from 'vitest';
import { emptyState, fold } from '../domain/policy-state.js';
import { rollBackFrom } from './rollback.js';
import type { ReleaseParts } from './swap.js';

/** A policy whose third version answers, and what was done to it. */
function policyOf(engines: readonly { readonly pools: readonly string[]; readonly versions: readonly string[] }[]) {
  const [done, kept]: [string[], string[]] = [[], []];
  let [state, sequence] = [emptyState('p'), 0];
  const append = (_: object, fact: Partial<WeightsStaged>) => {
    state = fold(state, { sequence: (sequence += 1), message: WeightsStaged.fromPartial(fact) });
    done.push(`${fact.version ?? ''} ${fact.stage ?? ''}`);
    return Promise.resolve(state);
  };
  for (const version of ['p-v0', 'p-v1', 'p-v2'])
    void append({}, { version, stage: WeightsStaged_Stage.STAGE_STABLE, manifestDigest: 'digest' });
  done.length = 0;
  const parts = {
    policy: 'p',
    chain: {
      get state() {
        return state;
      },
      append,
    },
    loaders: {
      ready: () => engines.map((engine, at) => ({ instance: String(at), engine: { ...engine, ready: true } })),
      prepare: () => Promise.resolve({ ready: [], failed: [{ code: 'weights_missing' }] }),
      keeping: async (version: string, work: () => Promise<void>) => {
        await work();
        kept.push(`${version} until ${done.at(-1)}`);
      },
    },
    routing: { route: () => Promise.resolve() },
    events: { rolledBack: () => undefined },
    clock: new FakeClock(),
  } as unknown as ReleaseParts;
  return { parts, done, kept };
}

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
  expect(await rollBackFrom(parts, 'p-v2', 'test')).toMatchObject({ to: 'p-v1', burned: ['p-v2'] });
  expect(done).toEqual(['p-v2 STAGE_BURNED']);
  expect(kept).toEqual(['p-v1 until p-v2 STAGE_BURNED']);
});
