// Which versions may be taken off the loaders. A version goes when it is not in the load set and no gateway reports a stream
// on it; or, where a gateway cannot be asked, when the longest stream is over. Pure.
import { baseVersion, versionNumber } from '@backtalk/kit';
import { loadSetOf, type PolicyState } from './policy-state.js';

/** What one gateway says about its streams; undefined when it could not be asked. */
export type StreamsReport = { readonly fence: number; readonly inFlight: ReadonlyMap<string, number> } | undefined;

export interface OpenStreams {
  readonly reports: readonly StreamsReport[];
  /** A gateway with a lower fence may still open streams on an old version. */
  readonly fence: number;
  readonly now: number;
  readonly streamMaxMs: number;
}

/** Versions of the policy that loaders hold and need not, with when each was first seen so. */
export function unwantedVersions(
  state: PolicyState,
  held: ReadonlySet<string>,
  since: ReadonlyMap<string, number>,
  now: number,
): ReadonlyMap<string, number> {
  const wanted = wantedVersions(state);
  const unwanted = [...held].filter(
    (version) => !wanted.has(version) && versionNumber(state.policy, version) !== undefined,
  );
  return new Map(unwanted.map((version) => [version, since.get(version) ?? now]));
}

/** Those of the unwanted versions that may be unloaded now. */
export function retirable(unwantedSince: ReadonlyMap<string, number>, streams: OpenStreams): string[] {
  const { reports, fence, now, streamMaxMs } = streams;
  const free = [...unwantedSince].filter(([version, at]) => {
    const isFree = reports.every(
      (report) => report !== undefined && report.fence >= fence && (report.inFlight.get(version) ?? 0) === 0,
    );
    return now - at >= streamMaxMs || isFree;
  });
  return free.map(([version]) => version);
}

/** A version that was stable and that no loader holds: once the chain says so, a rollback to it has to load it again. */
export function goneVersion(state: PolicyState, held: ReadonlySet<string>): string | undefined {
  const wanted = wantedVersions(state);
  return state.line.find((version) => !held.has(version) && !wanted.has(version) && !state.retired.has(version));
}

function wantedVersions(state: PolicyState): ReadonlySet<string> {
  return new Set([...loadSetOf(state).versions.map(({ version }) => version), baseVersion(state.policy)]);
}
