// Versions of a policy that were burned one after the other, none served between. A version that never served is never measured, so what
// it was to teach is neither learned nor given up: the same is trained from the same parent again, and each round spends people's
// corrections. A batch whose step was skipped or failed makes no version at all, and spends them too. From three in a row of either,
// training rests until something is otherwise. Pure.
import { versionNumber } from './weights-version.js';

/** So many in a row, burned or given up, and training rests. */
const inARowMax = 3;

/** What became of a trained version. */
export interface VersionFate {
  readonly version: string;
  readonly parent: string;
  /** Number of the batch that it was made from. */
  readonly batch: number;
  readonly isBurned: boolean;
  /** Now or ever. */
  readonly hasServed: boolean;
  /** Its step repeats that of another after an undo, and spends nothing: it was taken before. */
  readonly isRepeat?: boolean;
}

/** What is otherwise since: versions from before it do not count. */
export interface Otherwise {
  /** Number of the version that was the newest when an operator last said `resume`; 0: never. */
  readonly resumedAfter: number;
  /** Number of the newest batch that took in a change of lessons; 0: none. */
  readonly lessonsChangedAt: number;
}

/** @param fates in the order in which versions were trained. Out: in the same order. */
export function burnedInARow(policy: string, fates: readonly VersionFate[], since: Otherwise): string[] {
  const burned = new Set(fates.flatMap(({ version, isBurned }) => (isBurned ? [version] : [])));
  const row: string[] = [];
  for (const { version, parent, batch, isBurned, hasServed, isRepeat = false } of fates.toReversed()) {
    const isOld = (versionNumber(policy, version) ?? 0) <= since.resumedAfter || batch < since.lessonsChangedAt;
    if (hasServed || isOld) break;
    // What was built upon a burned version is burned with it, whatever it is like itself.
    if (isBurned && !isRepeat && !burned.has(parent)) row.unshift(version);
  }
  return row;
}

/** A fact that closes a batch, as far as it says what became of the one before. */
export interface ClosedBatch {
  readonly number: number;
  readonly why: string;
  /** Number of an earlier batch that is repeated; 0: none. */
  readonly repeats?: number;
}

/** Of a fact that gives up the batch with samples before it: its version never comes to be. */
export const givenUpBy: ReadonlySet<string> = new Set(['step_failed', 'step_skipped', 'burned_parent', 'abandoned']);

const spent: ReadonlySet<string> = new Set(['step_skipped', 'step_failed']);

/**
 * The facts that gave up a batch for its step, one after the other. What is repeated after an undo spends nothing: it was taken before.
 * @param closed all since the newest version was made, oldest first
 * @param resumedAfterBatch number of the newest fact when an operator last said `resume`; 0: never
 */
export function givenUpInARow<B extends ClosedBatch>(closed: readonly B[], resumedAfterBatch: number): B[] {
  const changedAt = closed.findLastIndex(({ why }) => why === 'lessons');
  return closed
    .slice(changedAt + 1)
    .filter(({ number, why, repeats = 0 }) => number > resumedAfterBatch && repeats === 0 && spent.has(why));
}

export function isHeld(row: readonly unknown[]): boolean {
  return row.length >= inARowMax;
}
