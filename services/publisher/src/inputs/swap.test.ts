import { BacktalkError } from '@backtalk/kit';
import { WeightsStaged_Stage } from '@backtalk/proto/facts';
import { expect, it } from 'vitest';
import type { SwapFacts } from '../events.js';
import type { LeasedEngine } from '../outputs/loaders.js';
import { policyOf } from '../testing/policy-parts.js';
import { Swap, type GateParts, type ReleaseParts } from './swap.js';

const holding = { pools: ['serving'], versions: ['p-v0', 'p-v1', 'p-v2'], loads: () => Promise.resolve() };
const sick = new BacktalkError({ code: 'engine_failed', status: 502, retry: 'later', message: 'It fails.' });
const trained = { version: 'p-v3', parent: 'p-v2', manifestDigest: 'digest' };

/** A gate that everything passes which an engine can score. */
function swapOf(parts: ReleaseParts, scoring: (instance: string) => Promise<void>) {
  const gate = {
    scorer: {
      manifest: () => Promise.resolve({ probes: [{ answerIds: [1], logprobs: [-1], toldLogprobs: [] }], dtype: '' }),
      score: async ({ instance }: LeasedEngine) => {
        await scoring(instance);
        return { candidate: [[-1]], base: [[-1]] };
      },
    },
    behaviour: { canAsk: () => false },
    cases: { ask: () => Promise.resolve([]) },
    limitsFor: () => ({ parityMax: 1, driftMax: 1, behaviourLevel: 0 }),
    driftLimits: { entropyFactor: 5, lengthFactor: 4, rollbackFactor: 10 },
    caseLimits: { perLesson: 0, most: 1, heldFrom: 0.5 },
  } as unknown as GateParts;
  return new Swap(parts, gate, () => Promise.resolve());
}

it('a candidate is measured on the next engine when the first loads it and cannot score', async () => {
  const { parts, done } = policyOf([holding, holding]);
  await swapOf(parts, (instance) => (instance === '0' ? Promise.reject(sick) : Promise.resolve())).decide(trained);
  expect(done).toEqual(['p-v3 STAGE_CANDIDATE', 'p-v3 STAGE_STABLE']);
});

it('a candidate that no engine can score is neither stable nor burned', async () => {
  const { parts, done, said } = policyOf([holding, holding]);
  await expect(swapOf(parts, () => Promise.reject(sick)).decide(trained)).rejects.toBe(sick);
  expect(done).toEqual(['p-v3 STAGE_CANDIDATE']);
  expect(said).toEqual(['candidateStaged', 'measuringFailed', 'measuringFailed']);
});

it.each([
  [1, 3, ['p-v3 STAGE_CANDIDATE']],
  [2, 3, ['p-v3 STAGE_CANDIDATE', 'p-v3 STAGE_STABLE']],
  [1, 2, ['p-v3 STAGE_CANDIDATE', 'p-v3 STAGE_STABLE']],
])('a candidate that %i of %i serving engines load waits for half of them', async (loading, engines, decided) => {
  const cannot = { pools: ['serving'], versions: ['p-v0', 'p-v1', 'p-v2'] };
  const { parts, done } = policyOf(Array.from({ length: engines }, (_, at) => (at < loading ? holding : cannot)));
  const decision = swapOf(parts, () => Promise.resolve()).decide(trained);
  if (decided.length === 1) await expect(decision).rejects.toThrow('1 of 3 engines hold p-v3');
  else await decision;
  expect(done).toEqual(decided);
});

it('a candidate is decided although what serves, which is to be rolled back, has nothing behind it that an engine can load', async () => {
  const gone = new BacktalkError({ code: 'weights_missing', retry: 'later', message: 'They are gone.' });
  const loads = (version: string) => (version === 'p-v1' ? Promise.reject(gone) : Promise.resolve());
  const { parts, done, said } = policyOf([{ pools: ['serving'], versions: ['p-v0', 'p-v2'], loads }]);
  const report = { measurements: { entropy_ratio: 0.01 }, samples: [] };
  await swapOf(parts, () => Promise.resolve()).decide({ ...trained, report });
  expect(done).toEqual(['p-v3 STAGE_CANDIDATE', 'p-v3 STAGE_STABLE']);
  expect(said[0]).toBe('workFailed');
});

it('the time of a swap counts from the first try to decide its candidate', async () => {
  const swapped: SwapFacts[] = [];
  const { parts, clock } = policyOf([holding]);
  let tries = 0;
  const swap = swapOf(parts, async () => {
    await clock.advance(60_000);
    tries += 1;
    if (tries === 1) throw sick;
  });
  Object.assign(parts.events, { swapped: (_: string, facts: SwapFacts) => swapped.push(facts) });
  await expect(swap.decide(trained)).rejects.toBe(sick);
  await swap.decide(trained);
  expect(swapped).toMatchObject([{ version: 'p-v3', swapSeconds: 120 }]);
});

it('a candidate that an operator burns while it is measured is decided by that', async () => {
  const { parts, done } = policyOf([holding]);
  const { chain } = parts;
  const swap = swapOf(parts, async () => {
    await chain.append(chain.state, { version: 'p-v3', stage: WeightsStaged_Stage.STAGE_BURNED });
  });
  await swap.decide(trained);
  expect(done).toEqual(['p-v3 STAGE_CANDIDATE', 'p-v3 STAGE_BURNED']);
});
