// `replay --judge`: the judge of now is asked about each turn that a row of versions was trained on, beside the judgements that count. In: the
// row's ends. Out: the asking, under which its judgements stand in the log, and who judged.
import { FactPublisher, FactReader, isFirstJudgement, systemClock, type BlobStore, type Broker } from '@backtalk/kit';
import type { BatchSample, WeightsTrained } from '@backtalk/proto/facts';
import { randomUUID } from 'node:crypto';
import { cliErrors } from './errors.js';
import type { Output } from './output.js';

export interface JudgedAgain {
  readonly asked: string;
  /** Names of models; "rules" where evidence alone decided. */
  readonly models: readonly string[];
}

interface JudgingLog {
  readonly broker: Broker;
  readonly blobs: BlobStore;
}

interface Row {
  readonly policy: string;
  readonly from: string;
  readonly to: string;
}

const lookEveryMs = 500;
const askedAtOnce = 32;

/** @param given an asking of before, which is taken up: what has an answer is not asked again */
export async function judgedAgain(
  log: JudgingLog,
  { policy, from, to }: Row,
  given: string | undefined,
  { waitMs, signal, output }: { readonly waitMs: number; readonly signal: AbortSignal; readonly output: Output },
): Promise<JudgedAgain> {
  const asked = given ?? randomUUID();
  const reader = new FactReader(log.broker, log.blobs);
  const samples = await samplesOf(reader, await batchesOf(reader, { policy, from, to }), policy);
  const publisher = new FactPublisher(log.broker);
  for (let at = 0; at < samples.length && !signal.aborted; at += askedAtOnce) {
    const ask = ({ turn, tenant, user }: BatchSample) =>
      publisher.publish('judgementAsked', { turn, tenant, user, policy, asked }, {});
    await Promise.all(samples.slice(at, at + askedAtOnce).map(ask));
  }
  const deadlineMs = systemClock.now() + waitMs;
  const progress = output.progress('judging again', samples.length);
  const open = new Set(samples.map(({ turn }) => turn));
  const models = new Set<string>();
  const filter = { turnRejudged: { policy, asked } };
  try {
    for (let next = 0; ;) {
      for await (const { message, sequence } of reader.read(['turnRejudged'], { filter, from: next })) {
        next = sequence + 1;
        open.delete(message.turn);
        if (message.judged !== undefined) models.add(message.judged.judgeModel);
      }
      const done = samples.length - open.size;
      progress.update(done, `${String(done)} turns`);
      if (open.size === 0) return { asked, models: [...models].sort() };
      if (signal.aborted || systemClock.now() > deadlineMs)
        throw cliErrors.rejudgingPending({ from, to, asked, done, of: samples.length });
      await systemClock.sleep(lookEveryMs, signal).catch(() => undefined);
    }
  } finally {
    progress.stop();
  }
}

/** Numbers of the batches of a row of versions; none where it is no row, of which the trainer says so. */
async function batchesOf(reader: FactReader, { policy, from, to }: Row): Promise<ReadonlySet<number>> {
  const trained = new Map<string, WeightsTrained>();
  const filter = { weightsTrained: { policy } };
  for await (const { message } of reader.read(['weightsTrained'], { filter })) trained.set(message.version, message);
  const batches = new Set<number>();
  for (let at = trained.get(to); at !== undefined; at = trained.get(at.parent)) {
    batches.add(at.batch);
    if (at.version === from) return batches;
  }
  return new Set();
}

/** Each turn once: a step that is repeated has the same. */
async function samplesOf(reader: FactReader, batches: ReadonlySet<number>, policy: string): Promise<BatchSample[]> {
  const samples = new Map<string, BatchSample>();
  const filter = { batchClosed: { policy } };
  for await (const { message } of reader.read(['batchClosed'], { filter })) {
    if (!batches.has(message.number)) continue;
    for (const sample of message.samples.filter(isFirstJudgement)) samples.set(sample.turn, sample);
  }
  return [...samples.values()];
}
