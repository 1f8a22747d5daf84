// A replay with the judge of now: reads what that judge made of the turns of a batch, and what was known when the batch closed. In: a batch of
// the past, and the asking. Out: the batch with those judgements.
import { isFirstJudgement } from '@backtalk/kit';
import type { BatchClosed, UserBaseline } from '@backtalk/proto/facts';

import { rejudgedBatch, type ClosedAt, type Rejudged, type RejudgedBatch } from '../domain/rejudged-batch.js';
import { trainerErrors } from '../errors.js';
import type { Ledger, LedgerState } from '../outputs/ledger.js';
import type { TrainerTools } from './trainer-tools.js';

interface Asked {
  readonly asked: string;
  /** As the row's batch before this one leaves them; undefined: as the log has them. */
  readonly baselines: readonly UserBaseline[] | undefined;
}

export async function rejudged(
  { turns, store }: Pick<TrainerTools, 'turns' | 'store'>,
  [log, ledger]: readonly [Ledger, LedgerState],
  batch: BatchClosed,
  { asked, baselines }: Asked,
): Promise<RejudgedBatch> {
  const recipe = await store.recipeOf(batch);
  const at = await closedAt([log, ledger], batch);
  const judgements = new Map<string, Rejudged>();
  for (const sample of batch.samples.filter(isFirstJudgement)) {
    const ids = { ...sample, policy: batch.policy };
    const [facts, first, again] = await Promise.all([
      turns.facts(ids),
      turns.firstJudgement(ids),
      turns.judgedAgain(ids, asked),
    ]);
    // Of a turn that is gone, the step says so in words of its own.
    if (first === undefined) continue;
    if (again === undefined) throw trainerErrors.notRejudged({ version: batch.version, turn: sample.turn });
    judgements.set(sample.turn, { facts, first, again: again.judged });
  }
  return rejudgedBatch(batch, judgements, { ...at, baselines: baselines ?? at.baselines }, recipe);
}

/** What was known when a batch closed; of one that repeats another, when that one did. */
async function closedAt([log, ledger]: readonly [Ledger, LedgerState], batch: BatchClosed): Promise<ClosedAt> {
  const { line } = ledger;
  const read = async (number: number) => {
    const found = await log.batch(ledger, number);
    if (found === undefined) throw trainerErrors.batchGone({ version: batch.version, batch: number });
    return found;
  };
  const origin = batch.first > 0 ? await read(batch.first) : batch;
  const before = origin.number > 1 ? await read(origin.number - 1) : undefined;
  const made = line.versions().filter((record) => record.batch < origin.number);
  return {
    lessons: before?.lessons ?? [],
    baselines: before?.baselines ?? [],
    versionsBack: line.versionsBackFrom(origin.parent),
    versionsAfter: (number) => made.filter((record) => record.batch > number).length,
  };
}
