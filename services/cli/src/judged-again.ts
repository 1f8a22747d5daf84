// `replay --judge`: the judge of now is asked about each turn that a row of versions was trained on, beside the judgements that count. In: the
// row's ends. Out: the asking, under which its judgements stand in the log, and who judged.
import { FactPublisher, FactReader, isFirstJudgement, systemClock, type Broker } from '@backtalk/kit';
import type { BatchSample, WeightsTrained } from '@backtalk/proto/facts';
import { randomUUID } from 'node:crypto';
import { cliErrors } from './errors.js';
import type { Output } from './output.js';

export interface JudgedAgain {
  readonly asked: string;
  readonly turns: number;
  /** Names of models; "rules" where evidence alone decided. */
  readonly models: readonly string[];
}

interface Row {
  readonly policy: string;
  readonly from: string;
  readonly to: string;
}

const lookEveryMs = 500;
const askedAtOnce = 32;

export async function judgedAgain(
  broker: Broker,
  { policy, from, to }: Row,
  { waitMs, signal, output }: { readonly waitMs: number; readonly signal: AbortSignal; readonly output: Output },
): Promise<JudgedAgain> {
  const asked = randomUUID();
  const samples = await samplesOf(broker, await batchesOf(broker, { policy, from, to }), policy);
  const publisher = new FactPublisher(broker);
  for (let at = 0; at < samples.length; at += askedAtOnce) {
    const some = samples.slice(at, at + askedAtOnce);
    await Promise.all(
      some.map(({ turn, tenant, user }) =>
        publisher.publish('judgementAsked', { turn, tenant, user, policy, asked }, {}),
      ),
    );
  }
  const deadlineMs = systemClock.now() + waitMs;
  const progress = output.progress('judging again', samples.length);
  try {
    for (;;) {
      const { done, models } = await answered(broker, policy, asked);
      progress.update(done, `${String(done)} turns`);
      if (done >= samples.length) return { asked, turns: done, models };
      if (signal.aborted || systemClock.now() > deadlineMs)
        throw cliErrors.rejudgingPending({ from, to, done, of: samples.length });
      await systemClock.sleep(lookEveryMs, signal).catch(() => undefined);
    }
  } finally {
    progress.stop();
  }
}

/** Numbers of the batches of a row of versions; none where it is no row, of which the trainer says so. */
async function batchesOf(broker: Broker, { policy, from, to }: Row): Promise<ReadonlySet<number>> {
  const trained = new Map<string, WeightsTrained>();
  const filter = { weightsTrained: { policy } };
  for await (const { message } of new FactReader(broker).read(['weightsTrained'], { filter }))
    trained.set(message.version, message);
  const batches = new Set<number>();
  for (let at = trained.get(to); at !== undefined; at = trained.get(at.parent)) {
    batches.add(at.batch);
    if (at.version === from) return batches;
  }
  return new Set();
}

/** Each turn once: a step that is repeated has the same. */
async function samplesOf(broker: Broker, batches: ReadonlySet<number>, policy: string): Promise<BatchSample[]> {
  const samples = new Map<string, BatchSample>();
  const filter = { batchClosed: { policy } };
  for await (const { message } of new FactReader(broker).read(['batchClosed'], { filter })) {
    if (!batches.has(message.number)) continue;
    for (const sample of message.samples.filter(isFirstJudgement)) samples.set(sample.turn, sample);
  }
  return [...samples.values()];
}

async function answered(broker: Broker, policy: string, asked: string) {
  const models = new Set<string>();
  let done = 0;
  const filter = { turnRejudged: { policy, asked } };
  for await (const { message } of new FactReader(broker).read(['turnRejudged'], { filter })) {
    done += 1;
    if (message.judged !== undefined) models.add(message.judged.judgeModel);
  }
  return { done, models: [...models].sort() };
}
