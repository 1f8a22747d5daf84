// A replay with the judge of now: reads what that judge made of the turns of a batch, and what was known when the batch closed. In: a batch of
// the past, and the asking. Out: the batch with those judgements.
import { isFirstJudgement } from '@backtalk/kit';
import type { BatchClosed, UserBaseline } from '@backtalk/proto/facts';

import { baselinesAfter } from '../domain/baselines.js';
import {
  rejudgedBatch,
  verdictsIn,
  type ClosedAt,
  type Rejudged,
  type RejudgedBatch,
} from '../domain/rejudged-batch.js';
import { trainerErrors } from '../errors.js';
import type { Ledger, LedgerState } from '../outputs/ledger.js';
import type { TrainerTools } from './trainer-tools.js';

interface Asked {
  readonly asked: string;
  /** By number of a batch: the baselines after it, as far as they are others than those of the log. */
  readonly reckoned: ReadonlyMap<number, readonly UserBaseline[]>;
}

export async function rejudged(
  { turns, store }: Pick<TrainerTools, 'turns' | 'store'>,
  [log, ledger]: readonly [Ledger, LedgerState],
  batch: BatchClosed,
  { asked, reckoned }: Asked,
): Promise<RejudgedBatch> {
  const recipe = await store.recipeOf(batch);
  const at = await closedAt([log, ledger], batch, reckoned);
  const judgements = new Map<string, Rejudged>();
  for (const sample of batch.samples.filter(isFirstJudgement)) {
    const found = await turns.judgements({ ...sample, policy: batch.policy }, asked);
    // Of a turn that is gone, the step says so in words of its own.
    if (found === 'missing') continue;
    const { facts, first, again } = found;
    if (again === undefined) throw trainerErrors.notRejudged({ version: batch.version, turn: sample.turn });
    judgements.set(sample.turn, { facts, first, again: again.judged });
  }
  return rejudgedBatch(batch, judgements, at, recipe);
}

/** What was known when a batch closed; of one that repeats another, when that one did, as far as the log holds it. */
async function closedAt(
  [log, ledger]: readonly [Ledger, LedgerState],
  batch: BatchClosed,
  reckoned: Asked['reckoned'],
): Promise<ClosedAt> {
  const { line } = ledger;
  const origin = (batch.first > 0 ? await log.batch(ledger, batch.first) : undefined) ?? batch;
  const before = await log.batchBefore(ledger, origin.number);
  const made = line.versions().filter(({ batch, version }) => batch < origin.number && !line.isTainted(version));
  const known = Math.max(0, ...[...reckoned.keys()].filter((number) => number < origin.number));
  const start = reckoned.get(known);
  let baselines = start ?? before?.baselines ?? [];
  if (start !== undefined) {
    // Of versions that came to nothing too: what was said in between has moved baselines.
    for await (const { samples, repeats } of log.batches(ledger, known + 1, origin.number - 1))
      if (repeats === 0) baselines = baselinesAfter(baselines, verdictsIn(samples));
  }
  return {
    moved: start !== undefined,
    lessons: before?.lessons ?? [],
    baselines,
    versionsBack: line.versionsBackFrom(origin.parent),
    versionsAfter: (number) => made.filter((record) => record.batch > number).length,
  };
}
