// What the rest of the system is told about a policy: who answers, and what every loader holds.
//
// In: the policy's state. Out: the values of the KV buckets `routes` and `load`. Pure.
import type { LoadSet, Routes } from '@backtalk/proto/weights';
import { previousOf, stableOf, type PolicyState } from './policy-state.js';

export function routesOf(state: PolicyState): Routes {
  const stable = stableOf(state);
  return {
    policy: state.policy,
    routes: [{ version: stable, share: 1 }],
    fence: state.fence,
    stable,
    previous: previousOf(state),
    // A candidate answers nobody before it is stable.
    candidate: '',
  };
}

/**
 * Stable, previous and candidate. After a rollback the version before the new stable one may have been retired: it is
 * not brought back, because a rollback loads nothing.
 */
export function loadSetOf(state: PolicyState): LoadSet {
  const previous = previousOf(state);
  const names = [stableOf(state), state.retired.has(previous) ? '' : previous, state.candidate];
  const versions = [...new Set(names)]
    .filter((version) => version !== '')
    .map((version) => ({ version, manifestDigest: state.digests.get(version) ?? '' }));
  return { policy: state.policy, versions };
}
