// Decides what an engine should load and unload, and when what failed is tried again. In: the set of versions that every
// loader of the policy holds, what this engine holds, and since when each version has been unwanted. Out: versions to load,
// versions to unload now. Pure.
import type { Retry } from '@backtalk/kit';
import type { LoadedVersion } from '@backtalk/proto/weights';

export interface ReconcileInput {
  readonly wanted: readonly LoadedVersion[];
  /** Checked and warm. */
  readonly held: readonly string[];
  /** On the engine, loaded by an earlier process. */
  readonly unchecked: readonly string[];
  /** When each held version was first seen outside the wanted set. */
  readonly unwantedSince: ReadonlyMap<string, number>;
  readonly now: number;
  /** How long an unwanted version stays: streams on it end, and gateways that are behind catch up. */
  readonly graceMs: number;
}

export interface ReconcilePlan {
  readonly load: readonly LoadedVersion[];
  readonly unload: readonly string[];
  readonly unwantedSince: ReadonlyMap<string, number>;
}

export function planReconcile(input: ReconcileInput): ReconcilePlan {
  const { wanted, held, unchecked, unwantedSince, now, graceMs } = input;
  const names = new Set(wanted.map(({ version }) => version));
  const heldNames = new Set(held);
  // The base has no files: its digest is empty.
  const load = wanted.filter(({ version, manifestDigest }) => manifestDigest !== '' && !heldNames.has(version));
  const unwanted = [...held, ...unchecked].filter((version) => !names.has(version));
  const since = new Map(unwanted.map((version) => [version, unwantedSince.get(version) ?? now]));
  const unload = unwanted.filter((version) => now - (since.get(version) ?? now) >= graceMs);
  return { load, unload, unwantedSince: since };
}

const firstMs = 1_000;
const longestMs = 30_000;

/**
 * When a version that could not be loaded or unloaded is tried again: later from failure to failure. A refusal (`never`) is tried at the
 * longest wait, because an engine may refuse what it took before for want of room.
 */
export class RetryTimes {
  private readonly failures = new Map<string, { count: number; at: number }>();

  isDue(version: string, now: number): boolean {
    return now >= (this.failures.get(version)?.at ?? 0);
  }

  countOf(version: string): number {
    return this.failures.get(version)?.count ?? 0;
  }

  failed(version: string, now: number, retry: Retry): void {
    const count = (this.failures.get(version)?.count ?? 0) + 1;
    const waitMs = retry === 'later' ? Math.min(longestMs, firstMs * 2 ** Math.min(count - 1, 10)) : longestMs;
    this.failures.set(version, { count, at: now + waitMs });
  }

  /** Everything is due again. */
  forget(): void {
    this.failures.clear();
  }
}
