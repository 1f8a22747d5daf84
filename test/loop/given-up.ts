// Which batches made no version, and by which fact. In: the log's batches in order. Out: the fact without samples that gave one up. Pure.
import type { StoredFact } from '@backtalk/kit';

type Batch = StoredFact<'batchClosed'>;

const reasons = new Set(['step_failed', 'step_skipped', 'burned_parent', 'abandoned']);

/** A batch is given up by a fact that says so before another batch with samples is closed. */
export function givingUpOf(batches: readonly Batch[], batch: Batch): Batch | undefined {
  const following = batches.filter(({ message }) => message.number > batch.message.number);
  const next = following.findIndex(({ message }) => message.samples.length > 0);
  return (next < 0 ? following : following.slice(0, next)).find(({ message }) => reasons.has(message.why));
}
