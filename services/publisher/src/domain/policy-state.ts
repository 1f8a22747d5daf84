// What the chain of staged facts says about a policy.
//
// In: `weights.staged` facts in order, each with its stream sequence. Out: who is stable, who was before, who waits,
// who is burned. Pure: the same facts give the same state, wherever a publisher stopped.
import { WeightsStaged_Stage, type WeightsStaged } from '@backtalk/proto/facts';

export interface PolicyState {
  readonly policy: string;
  /** Stream sequence of the newest fact; 0 while there is none. */
  readonly sequence: number;
  /** Stream sequence of the fact that last changed who is stable. */
  readonly fence: number;
  /** Versions that became stable and were not burned, oldest first. The last is stable now. */
  readonly line: readonly string[];
  /** The version that is staged and not yet decided; empty when there is none. */
  readonly candidate: string;
  readonly burned: ReadonlySet<string>;
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
export function standsTheSame(one: PolicyState, other: PolicyState): boolean {
  return (
    one.candidate === other.candidate &&
    one.burned.size === other.burned.size &&
    one.line.length === other.line.length &&
    one.line.every((version, at) => version === other.line[at])
  );
}

export function fold(state: PolicyState, { sequence, message }: StagedAt): PolicyState {
  const { version, manifestDigest } = message;
  const known = manifestDigest === '' ? state.digests : new Map([...state.digests, [version, manifestDigest]]);
  const next = { ...state, sequence, digests: known };
  switch (message.stage) {
    case WeightsStaged_Stage.STAGE_CANDIDATE:
      return { ...next, candidate: version };
    case WeightsStaged_Stage.STAGE_STABLE:
      return { ...next, ...becomeStable(state, version), fence: sequence };
    case WeightsStaged_Stage.STAGE_BURNED:
      return { ...next, ...burn(state, version), fence: stableOf(state) === version ? sequence : state.fence };
    case WeightsStaged_Stage.STAGE_RETIRED:
      return { ...next, retired: new Set([...state.retired, version]) };
    default:
      // Stages that this release does not know change nothing but the end of the chain.
      return next;
  }
}

function becomeStable(state: PolicyState, version: string): Pick<PolicyState, 'line' | 'candidate' | 'retired'> {
  return {
    line: [...state.line.filter((other) => other !== version), version],
    candidate: withoutCandidate(state, version),
    retired: without(state.retired, version),
  };
}

/** Burning the stable version makes the one before it stable. */
function burn(state: PolicyState, version: string): Pick<PolicyState, 'line' | 'candidate' | 'burned' | 'retired'> {
  const line = state.line.filter((other) => other !== version);
  return {
    line,
    candidate: withoutCandidate(state, version),
    burned: new Set([...state.burned, version]),
    retired: without(state.retired, line.at(-1) ?? ''),
  };
}

function withoutCandidate({ candidate }: PolicyState, version: string): string {
  return candidate === version ? '' : candidate;
}

function without(set: ReadonlySet<string>, item: string): ReadonlySet<string> {
  return new Set([...set].filter((other) => other !== item));
}
