import { WeightsStaged_Stage } from '@backtalk/proto/facts';
import { expect, it } from 'vitest';
import { publisherErrors } from '../errors.js';
import { policyOf } from '../testing/policy-parts.js';
import { controlCalls } from './control.js';
import type { ReleaseParts } from './swap.js';

const stage = WeightsStaged_Stage.STAGE_CANDIDATE;

function burn(parts: ReleaseParts, version: string, unreadable = '') {
  const trained = { isUnreadable: (name: string) => Promise.resolve(name === unreadable) };
  const calls = controlCalls([{ parts, leader: { hasBegun: true }, trained }], () => true);
  return calls.burn({ policy: 'p', version, why: 'no engine takes it' }, {} as Parameters<typeof calls.burn>[1]);
}

async function waiting() {
  const policy = policyOf([]);
  const { chain } = policy.parts;
  await chain.append(chain.state, { version: 'p-v3', stage });
  return policy;
}

it('a candidate that nothing decides is burned with an operator’s words, once', async () => {
  const { parts, done, facts, said } = await waiting();
  await burn(parts, 'p-v3');
  await burn(parts, 'p-v3');
  expect(done).toEqual(['p-v3 STAGE_CANDIDATE', 'p-v3 STAGE_BURNED']);
  expect(facts.at(-1)).toMatchObject({ previous: 'p-v2', why: 'operator: no engine takes it' });
  expect(said).toEqual(['burned']);
});

it.each(['p-v2', 'p-v1', 'p-v9'])('%s, which is no candidate, is not burned', async (version) => {
  const { parts, done } = await waiting();
  await expect(burn(parts, version)).rejects.toMatchObject({ code: 'not_undecided' });
  expect(done).toEqual(['p-v3 STAGE_CANDIDATE']);
});

it('a version whose fact cannot be read is no candidate, and is burned all the same', async () => {
  const { parts, done } = policyOf([]);
  await burn(parts, 'p-v3', 'p-v3');
  expect(done).toEqual(['p-v3 STAGE_BURNED']);
  await expect(burn(parts, 'p-v2', 'p-v2')).rejects.toMatchObject({ code: 'not_undecided' });
});

it('a candidate that became stable in this moment is not burned', async () => {
  const { parts, done } = await waiting();
  const { chain } = parts;
  const reload = chain.reload.bind(chain);
  let isFirst = true;
  chain.reload = async () => {
    const state = await reload();
    if (isFirst) await chain.append(chain.state, { version: 'p-v3', stage: WeightsStaged_Stage.STAGE_STABLE });
    isFirst = false;
    return state;
  };
  await expect(burn(parts, 'p-v3')).rejects.toMatchObject({ code: 'not_undecided' });
  expect(done.at(-1)).toBe('p-v3 STAGE_STABLE');
});

it('a publisher that leads no more burns no candidate', async () => {
  const { parts, done } = await waiting();
  const assertLeading = () => {
    throw publisherErrors.notLeading();
  };
  await expect(burn(Object.assign(parts, { assertLeading }), 'p-v3')).rejects.toMatchObject({ code: 'not_leading' });
  expect(done).toEqual(['p-v3 STAGE_CANDIDATE']);
});
