// One round of learning on the laptop's model: people ask, correct what they hear, and the version that comes of it answers.
// In: a real machine. Out: when each step of the way was over.
import { FactReader, folderBlobStore, kvBucket, type Broker, type StoredFact } from '@backtalk/kit';
import { until } from '@backtalk/kit/testing';
import { WeightsStaged_Stage } from '@backtalk/proto/facts';
import { Routes } from '@backtalk/proto/weights';
import type { TestMachine } from '../loop/machine.js';
import { randomFrom } from '../loop/random.js';
import { corrections, question } from '../loop/small-talk.js';
import { ask, type Message } from '../loop/talk.js';
import { benchErrors } from './errors.js';

const policy = 'backtalk';
const batch = 8;
const together = 4;
const answerTokens = 48;
/** Answers to corrections are not read by anybody. */
const replyTokens = 8;
const judgedWithinMs = 45_000;
const furtherMax = 24;
const servedWithinMs = 300_000;

/** Seconds from the moment in which the correction that filled the batch was sent. */
export interface LearningRound {
  readonly version: string;
  readonly corrections: number;
  readonly closed: number;
  readonly trained: number;
  readonly stable: number;
  readonly answered: number;
}

export class LearningTalk {
  private readonly reader: FactReader;
  private readonly random = randomFrom(7);
  private asked = 0;
  /** When the correction of a turn was sent, in milliseconds since 1970, as the broker counts. */
  private readonly correctedAt = new Map<string, number>();

  constructor(
    private readonly machine: TestMachine,
    private readonly broker: Broker,
  ) {
    this.reader = new FactReader(broker, folderBlobStore(machine.data.blobs));
  }

  async round(say: (progress: string) => void): Promise<LearningRound> {
    const before = this.asked;
    const closed = await this.fillBatch((await this.lastBatch())?.message.number ?? 0, say);
    const { version, samples } = closed.message;
    const filledAt = Math.max(
      ...samples.filter(({ effective }) => effective).map(({ turn }) => this.correctedAt.get(turn) ?? 0),
    );
    say(`training ${version}`);
    const stableAt = await this.stableAt(version);
    const { weights } = await this.askSomething(answerTokens);
    if (weights !== version) throw benchErrors.unreadable({ what: `The first answer after ${version}, by ${weights}` });
    const answeredAt = Date.now();
    const trained = await this.reader.last('weightsTrained', { policy });
    const since = (at: number) => (at - filledAt) / 1_000;
    return {
      version,
      corrections: this.asked - before - 1,
      closed: since(closed.timeMs),
      trained: since(trained?.timeMs ?? Number.NaN),
      stable: since(stableAt),
      answered: since(answeredAt),
    };
  }

  /** Corrects until the batch closes: not every correction is judged to be one. */
  private async fillBatch(after: number, say: (progress: string) => void): Promise<StoredFact<'batchClosed'>> {
    let sent = 0;
    const client = async () => {
      while (sent < batch) {
        sent += 1;
        say(`correction ${sent} of ${batch}`);
        await this.correct();
      }
    };
    await Promise.all(Array.from({ length: together }, client));
    for (let further = 0; further < furtherMax; further += 1) {
      say(`waiting for the judge${further === 0 ? '' : `; ${further} further corrections`}`);
      const closed = await this.batchAfter(after);
      if (closed !== undefined) return closed;
      await this.correct();
    }
    throw benchErrors.unreadable({ what: `The log: no batch after ${batch + furtherMax} corrections, which` });
  }

  private async correct(): Promise<void> {
    const heard = await this.askSomething(answerTokens);
    const asked: Message = { role: 'user', content: heard.question };
    const words: Message = { role: 'user', content: this.random.pick(corrections) };
    this.correctedAt.set(heard.turn, Date.now());
    const messages = [asked, { role: 'assistant' as const, content: heard.text }, words];
    await ask(this.machine.gateway, { messages, maxTokens: replyTokens });
  }

  private async askSomething(maxTokens: number) {
    this.asked += 1;
    const content = question(this.random, this.asked);
    const heard = await ask(this.machine.gateway, { messages: [{ role: 'user', content }], maxTokens });
    if (!heard.finished) throw benchErrors.requestFailed({ what: `the gateway (${heard.error})`, failed: 1, of: 1 });
    return { ...heard, question: content };
  }

  private lastBatch(): Promise<StoredFact<'batchClosed'> | undefined> {
    return this.reader.last('batchClosed', { policy });
  }

  private async batchAfter(number: number): Promise<StoredFact<'batchClosed'> | undefined> {
    const closed = async () => {
      const last = await this.lastBatch();
      return last !== undefined && last.message.number > number && last.message.samples.length > 0 && last;
    };
    return until(closed, { timeoutMs: judgedWithinMs, everyMs: 100, what: 'The batch closes' }).catch(() => undefined);
  }

  /** When routes named the version, in milliseconds since 1970. */
  private async stableAt(version: string): Promise<number> {
    const routes = kvBucket(this.broker, 'routes', Routes);
    const decided = async () => {
      const staged = await this.reader.last('weightsStaged', { policy });
      if (staged?.message.version === version && staged.message.stage === WeightsStaged_Stage.STAGE_BURNED)
        return staged.message.why;
      return (await routes.get(policy))?.value.stable === version && '';
    };
    const burned = await until(async () => wrap(await decided()), {
      timeoutMs: servedWithinMs,
      everyMs: 100,
      what: `${version} serves`,
    });
    if (burned.why !== '') throw benchErrors.refused({ version, why: burned.why });
    return Date.now();
  }
}

function wrap(why: string | false): { readonly why: string } | false {
  return why !== false && { why };
}
