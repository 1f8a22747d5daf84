import { describe, expect, it } from 'vitest';
import { emptyState } from './policy-state.js';
import { rollbackTarget } from './rollback-target.js';

const after = (line: readonly string[], burned: readonly string[] = []) => ({
  ...emptyState('p'),
  line,
  burned: new Set(burned),
});

describe('rollbackTarget', () => {
  it('is the stable version before the present one', () => {
    expect(rollbackTarget(after(['p-v0', 'p-v1', 'p-v2']), 'p-v2')).toEqual({ kind: 'step', to: 'p-v1' });
  });

  it('is nothing where no version was stable before', () => {
    expect(rollbackTarget(after(['p-v0'], ['p-v1']), 'p-v0')).toEqual({ kind: 'nothing', stable: 'p-v0' });
    expect(rollbackTarget(after([]), '')).toEqual({ kind: 'nothing', stable: '' });
  });

  it('is reached already when another rollback took the same step, which is then taken once', () => {
    expect(rollbackTarget(after(['p-v0', 'p-v1'], ['p-v2']), 'p-v2')).toEqual({ kind: 'done', to: 'p-v1' });
  });

  it('never burns a version that became stable after the operator asked', () => {
    const state = after(['p-v0', 'p-v1', 'p-v2', 'p-v3']);
    expect(rollbackTarget(state, 'p-v2')).toEqual({ kind: 'changed', stable: 'p-v3' });
  });
});
