// What the chain of staged facts says about a policy, and what follows for routes, load set and rollbacks. In:
// `weights.staged` facts in order, each with its stream sequence. Out: which version is stable, which was before, which
// waits, which are burned. Pure: the same facts give the same state, wherever a publisher stopped.
import { WeightsStaged_Stage, type WeightsStaged } from '@backtalk/proto/facts';
import type { LoadSet, Routes } from '@backtalk/proto/weights';

export interface PolicyState {
  readonly policy: string;
  /** Stream sequence of the newest fact; 0 while there is none. */
  readonly sequence: number;
  /** Stream sequence of the fact that last changed which version is stable. */
  readonly fence: number;
  /** Versions that became stable and were not burned, oldest first. The last is stable now. */
  readonly line: readonly string[];
  /** The version that is staged and not yet decided; empty when there is none. */
  readonly candidate: string;
  readonly burned: ReadonlySet<string>;
  /** Of those, the ones of which nothing is wrong but that something they were taught is undone. */
  readonly undone: ReadonlySet<string>;
  /** Versions that no engine needs to hold any more. */
  readonly retired: ReadonlySet<string>;
  /** Manifest digests by version. */
  readonly digests: ReadonlyMap<string, string>;
}

export interface StagedAt {
  readonly sequence: number;
  readonly message: WeightsStaged;
}

export function emptyState(policy: string): PolicyState {
  return {
    policy,
    sequence: 0,
    fence: 0,
    line: [],
    candidate: '',
    burned: new Set(),
    undone: new Set(),
    retired: new Set(),
    digests: new Map(),
  };
}

export function stableOf({ line }: PolicyState): string {
  return line.at(-1) ?? '';
}

/** Where a rollback leads: the stable version before this one, not burned; empty when there is none. */
export function previousOf({ line }: PolicyState): string {
  return line.at(-2) ?? '';
}

export function isDecided({ line, burned, retired }: PolicyState, version: string): boolean {
  return line.includes(version) || burned.has(version) || retired.has(version);
}

/** Whether a decision made on one state holds on the other: versions may have been retired in between. */
export function isSameRelease(one: PolicyState, other: PolicyState): boolean {
  return (
    one.candidate === other.candidate &&
    one.burned.size === other.burned.size &&
    one.line.length === other.line.length &&
    one.line.every((version, at) => version === other.line[at])
  );
}

export function fold(state: PolicyState, staged: StagedAt): PolicyState {
  return foldAll(state, [staged]);
}

/** In time in proportion to both: a policy has thousands of versions in the end. */
export function foldAll(state: PolicyState, chain: Iterable<StagedAt>): PolicyState {
  const { line, burned, undone, retired, digests } = state;
  const next: Folding = {
    ...state,
    line: [...line],
    burned: new Set(burned),
    undone: new Set(undone),
    retired: new Set(retired),
    digests: new Map(digests),
  };
  for (const staged of chain) take(next, staged);
  return next;
}

interface Folding extends PolicyState {
  sequence: number;
  fence: number;
  candidate: string;
  readonly line: string[];
  readonly burned: Set<string>;
  readonly undone: Set<string>;
  readonly retired: Set<string>;
  readonly digests: Map<string, string>;
}

function take(next: Folding, { sequence, message }: StagedAt): void {
  const { version, manifestDigest, stage, undone } = message;
  next.sequence = sequence;
  if (manifestDigest !== '') next.digests.set(version, manifestDigest);
  const stable = stableOf(next);
  if (stage === WeightsStaged_Stage.STAGE_STABLE || stage === WeightsStaged_Stage.STAGE_BURNED) {
    if (next.candidate === version) next.candidate = '';
    const at = next.line.lastIndexOf(version);
    if (at >= 0) next.line.splice(at, 1);
  }
  switch (stage) {
    case WeightsStaged_Stage.STAGE_CANDIDATE:
      next.candidate = version;
      break;
    case WeightsStaged_Stage.STAGE_STABLE:
      next.line.push(version);
      next.retired.delete(version);
      next.fence = sequence;
      break;
    case WeightsStaged_Stage.STAGE_BURNED:
      next.burned.add(version);
      if (undone) next.undone.add(version);
      // Burning the stable version makes the one before it stable.
      next.retired.delete(stableOf(next));
      if (stable === version) next.fence = sequence;
      break;
    case WeightsStaged_Stage.STAGE_RETIRED:
      next.retired.add(version);
      break;
    default:
    // Stages that this release does not know change nothing but the end of the chain.
  }
}

export function routesOf(state: PolicyState): Routes {
  const stable = stableOf(state);
  return {
    policy: state.policy,
    routes: [{ version: stable, share: 1 }],
    fence: state.fence,
    stable,
    previous: previousOf(state),
    // A candidate answers no request before it is stable.
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

export type RollbackTarget =
  /** Oldest first: until the last of them is burned, the present version answers. */
  | { readonly kind: 'step'; readonly to: string; readonly burns: readonly string[] }
  /** Another call rolled the same version back. */
  | { readonly kind: 'done'; readonly to: string }
  /** Another version became stable meanwhile. */
  | { readonly kind: 'changed'; readonly stable: string }
  | { readonly kind: 'nothing'; readonly stable: string }
  /** The wanted version never answered, or is burned. */
  | { readonly kind: 'unknown' };

/**
 * Where a rollback leads, now that the chain may have moved since it was asked for: it never burns a version that the operator
 * has not seen serve, unless a version is named that was made before it.
 *
 * @param from the version that was stable when the operator asked
 * @param wanted the version that is to answer again; empty: the one before
 */
export function rollbackTarget(state: PolicyState, from: string, wanted = ''): RollbackTarget {
  const stable = stableOf(state);
  if (wanted !== '') {
    if (!state.line.includes(wanted)) return { kind: 'unknown' };
    const burns = state.line.slice(state.line.indexOf(wanted) + 1);
    return burns.length === 0 ? { kind: 'done', to: stable } : { kind: 'step', to: wanted, burns };
  }
  if (stable !== from) return state.burned.has(from) ? { kind: 'done', to: stable } : { kind: 'changed', stable };
  const to = previousOf(state);
  return to === '' ? { kind: 'nothing', stable } : { kind: 'step', to, burns: [stable] };
}
