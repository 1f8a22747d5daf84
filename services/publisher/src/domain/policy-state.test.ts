import { WeightsStaged, WeightsStaged_Stage } from '@backtalk/proto/facts';
import { describe, expect, it } from 'vitest';
import {
  emptyState,
  fold,
  isDecided,
  isSameRelease,
  loadSetOf,
  previousOf,
  rollbackTarget,
  routesOf,
  stableOf,
  type PolicyState,
} from './policy-state.js';

const stages = {
  candidate: WeightsStaged_Stage.STAGE_CANDIDATE,
  stable: WeightsStaged_Stage.STAGE_STABLE,
  burned: WeightsStaged_Stage.STAGE_BURNED,
  retired: WeightsStaged_Stage.STAGE_RETIRED,
};

function stateAfter(...facts: readonly (readonly [number, keyof typeof stages])[]): PolicyState {
  return facts.reduce((state, [number, stage], at) => {
    const version = `p-v${number}`;
    const manifestDigest = number === 0 ? '' : `digest${number}`;
    const message = WeightsStaged.fromPartial({ policy: 'p', version, stage: stages[stage], manifestDigest });
    return fold(state, { sequence: 10 * (at + 1), message });
  }, emptyState('p'));
}

describe('the chain of staged facts', () => {
  it('a fact changes no state that was read before it', () => {
    const before = stateAfter([0, 'stable'], [1, 'stable'], [0, 'retired'], [2, 'candidate']);
    const copy = structuredClone(before);
    const message = WeightsStaged.fromPartial({ policy: 'p', version: 'p-v1', stage: stages.burned, undone: true });
    const after = fold(before, { sequence: 50, message });
    expect(before).toEqual(copy);
    expect([
      after.line,
      [...after.burned],
      [...after.undone],
      [...after.retired],
      after.candidate,
      after.fence,
    ]).toEqual([['p-v0'], ['p-v1'], ['p-v1'], [], 'p-v2', 50]);
  });

  it('a policy has no stable version before the first fact', () => {
    const state = emptyState('p');
    expect([stableOf(state), previousOf(state), state.sequence, state.fence]).toEqual(['', '', 0, 0]);
  });

  it('moves stable, previous and fence with each swap, and none of them with a candidate', () => {
    const state = stateAfter([0, 'stable'], [1, 'candidate'], [1, 'stable'], [2, 'candidate']);
    expect([stableOf(state), previousOf(state), state.candidate]).toEqual(['p-v1', 'p-v0', 'p-v2']);
    expect([state.fence, state.sequence]).toEqual([30, 40]);
    expect(isDecided(state, 'p-v1')).toBe(true);
    expect(isDecided(state, 'p-v2')).toBe(false);
  });

  it('makes the version before stable when the stable one is burned, past those burned before', () => {
    const state = stateAfter([0, 'stable'], [1, 'stable'], [2, 'stable'], [3, 'stable'], [3, 'burned'], [2, 'burned']);
    expect([stableOf(state), previousOf(state), state.fence]).toEqual(['p-v1', 'p-v0', 60]);
  });

  it('leaves routes and fence alone when a candidate is burned', () => {
    const state = stateAfter([0, 'stable'], [1, 'candidate'], [1, 'burned']);
    expect([stableOf(state), state.candidate, state.fence]).toEqual(['p-v0', '', 10]);
    expect(isDecided(state, 'p-v1')).toBe(true);
  });

  it('takes decisions for the same although a version was retired in between', () => {
    const before = stateAfter([0, 'stable'], [1, 'stable'], [2, 'stable']);
    const retired = stateAfter([0, 'stable'], [1, 'stable'], [2, 'stable'], [0, 'retired']);
    const rolledBack = stateAfter([0, 'stable'], [1, 'stable'], [2, 'stable'], [2, 'burned']);
    expect(isSameRelease(before, retired)).toBe(true);
    expect(isSameRelease(before, rolledBack)).toBe(false);
  });
});

describe('routes and load set', () => {
  it('routes everything to the stable version, under its fence', () => {
    const state = stateAfter([0, 'stable'], [1, 'candidate'], [1, 'stable'], [2, 'candidate']);
    expect(routesOf(state)).toEqual({
      policy: 'p',
      routes: [{ version: 'p-v1', share: 1 }],
      fence: 30,
      stable: 'p-v1',
      previous: 'p-v0',
      candidate: '',
    });
  });

  it('loads stable, previous and candidate, each with its digest, the base with none', () => {
    const state = stateAfter([0, 'stable'], [1, 'stable'], [2, 'candidate']);
    expect(loadSetOf(state).versions).toEqual([
      { version: 'p-v1', manifestDigest: 'digest1' },
      { version: 'p-v0', manifestDigest: '' },
      { version: 'p-v2', manifestDigest: 'digest2' },
    ]);
  });

  it('a retired version does not come back after a rollback, until it is stable again', () => {
    const swaps = [
      [0, 'stable'],
      [1, 'stable'],
      [2, 'stable'],
      [3, 'stable'],
      [1, 'retired'],
    ] as const;
    const once = stateAfter(...swaps, [3, 'burned']);
    expect(loadSetOf(once).versions.map(({ version }) => version)).toEqual(['p-v2']);
    const twice = stateAfter(...swaps, [3, 'burned'], [2, 'burned']);
    expect(loadSetOf(twice).versions.map(({ version }) => version)).toEqual(['p-v1', 'p-v0']);
  });
});

const after = (line: readonly string[], burned: readonly string[] = []) => ({
  ...emptyState('p'),
  line,
  burned: new Set(burned),
});

describe('rollbackTarget', () => {
  it('rolls back to the stable version before the present one', () => {
    expect(rollbackTarget(after(['p-v0', 'p-v1', 'p-v2']), 'p-v2')).toEqual({
      kind: 'step',
      to: 'p-v1',
      burns: ['p-v2'],
    });
  });

  it('rolls back to nothing where no version was stable before', () => {
    expect(rollbackTarget(after(['p-v0'], ['p-v1']), 'p-v0')).toEqual({ kind: 'nothing', stable: 'p-v0' });
    expect(rollbackTarget(after([]), '')).toEqual({ kind: 'nothing', stable: '' });
  });

  it('leads to the version that is named, one step after the other, whatever the caller has seen', () => {
    const state = after(['p-v0', 'p-v1', 'p-v2', 'p-v3']);
    expect(rollbackTarget(state, 'p-v1', 'p-v1')).toEqual({ kind: 'step', to: 'p-v1', burns: ['p-v2', 'p-v3'] });
    expect(rollbackTarget(state, 'p-v3', 'p-v2')).toEqual({ kind: 'step', to: 'p-v2', burns: ['p-v3'] });
    expect(rollbackTarget(state, 'p-v9', 'p-v3')).toEqual({ kind: 'done', to: 'p-v3' });
    expect(rollbackTarget(state, 'p-v3', 'p-v8')).toEqual({ kind: 'unknown' });
    expect(rollbackTarget(after(['p-v0', 'p-v1'], ['p-v2']), 'p-v1', 'p-v2')).toEqual({ kind: 'unknown' });
  });

  it('takes the step of two equal rollbacks once', () => {
    expect(rollbackTarget(after(['p-v0', 'p-v1'], ['p-v2']), 'p-v2')).toEqual({ kind: 'done', to: 'p-v1' });
  });

  it('never burns a version that became stable after the operator asked', () => {
    const state = after(['p-v0', 'p-v1', 'p-v2', 'p-v3']);
    expect(rollbackTarget(state, 'p-v2')).toEqual({ kind: 'changed', stable: 'p-v3' });
  });
});
