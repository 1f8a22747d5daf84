// Clients that talk at the same time, each in conversations of its own, and write a ledger of all that they saw.
// In: a gateway and a seed. Out: the ledger; a request that fails ends its conversation, and the client begins another.
import { until } from '@backtalk/kit/testing';
import { rowOf, ask, type Heard, type Message } from './talk.js';
import type { LedgerRow } from './ledger.js';
import { randomFrom, type Random } from './random.js';
import { corrections, praises, question } from './small-talk.js';

export interface CrowdOptions {
  readonly gateway: string;
  readonly seed: number;
  readonly clients: number;
  /** Share of replies that correct; the others praise. */
  readonly corrects?: number;
  /** Share of conversations that ask not to be learned from. */
  readonly optsOut?: number;
  /** Share of requests that are streamed. */
  readonly streams?: number;
  readonly maxTokens?: number;
  /** Of the one user that all clients are; none where no key is asked for. */
  readonly key?: string;
  /** How long a client that was refused goes on trying; a minute when left out. */
  readonly patienceMs?: number;
}

export interface Crowd {
  readonly ledger: readonly LedgerRow[];
  /** Answers that arrived whole until now. */
  readonly finished: number;
  /** Requests that are being answered now. */
  readonly talking: number;
  /** Those among them whose answer has begun to arrive. */
  readonly hearing: number;
  /** Lets every client finish its request; gives the ledger. */
  stop(): Promise<readonly LedgerRow[]>;
}

const repliesMax = 2;

export function startCrowd(options: CrowdOptions): Crowd {
  const crowd = new RunningCrowd(options);
  crowd.start();
  return crowd;
}

class RunningCrowd implements Crowd {
  readonly ledger: LedgerRow[] = [];
  finished = 0;
  talking = 0;
  hearing = 0;
  private stopping = false;
  private asked = 0;
  private clients: Promise<void>[] = [];

  constructor(private readonly options: CrowdOptions) {}

  start(): void {
    const { clients, seed } = this.options;
    this.clients = Array.from({ length: clients }, (_, at) => this.live(`client-${String(at)}`, seed * 1_000 + at));
  }

  async stop(): Promise<readonly LedgerRow[]> {
    this.stopping = true;
    await Promise.all(this.clients);
    return this.ledger;
  }

  private async live(name: string, seed: number): Promise<void> {
    const random = randomFrom(seed);
    while (!this.stopping) {
      const wentWell = await this.converse(name, random);
      if (!wentWell && !this.stopping) await this.gatewayServes();
    }
  }

  private async converse(name: string, random: Random): Promise<boolean> {
    const optedOut = random.next() < (this.options.optsOut ?? 0);
    const replies = 1 + random.below(repliesMax);
    this.asked += 1;
    let messages: Message[] = [{ role: 'user', content: question(random, this.asked) }];
    let continues = '';
    for (let reply = 0; reply <= replies && !this.stopping; reply += 1) {
      const heard = await this.say(messages, random, optedOut);
      this.ledger.push(rowOf(name, heard, { continues, optedOut }));
      if (!heard.finished || heard.error !== '') return false;
      this.finished += 1;
      continues = heard.turn;
      const words = random.next() < (this.options.corrects ?? 0.7) ? random.pick(corrections) : random.pick(praises);
      messages = [...messages, { role: 'assistant', content: heard.text }, { role: 'user', content: words }];
    }
    return true;
  }

  private async say(messages: readonly Message[], random: Random, optedOut: boolean): Promise<Heard> {
    const { gateway, streams = 0.8, maxTokens } = this.options;
    let begun = 0;
    this.talking += 1;
    try {
      return await ask(gateway, {
        onText: () => {
          this.hearing += 1 - begun;
          begun = 1;
        },
        messages,
        stream: random.next() < streams,
        ...(maxTokens !== undefined && { maxTokens }),
        seed: random.below(1_000_000),
        headers: { ...this.authorization(), ...(optedOut && { 'X-Backtalk-Train': 'off' }) },
      });
    } finally {
      this.hearing -= begun;
      this.talking -= 1;
    }
  }

  /** A client that was refused tries until it is served again; the tries are no part of the ledger. */
  private async gatewayServes(): Promise<void> {
    const { gateway, patienceMs = 60_000 } = this.options;
    const models = `${gateway}/v1/models`;
    await until(async () => this.stopping || (await fetch(models, { headers: this.authorization() })).ok, {
      what: 'The gateway serves again',
      timeoutMs: patienceMs,
      everyMs: 100,
    });
  }

  private authorization(): Record<string, string> {
    return this.options.key === undefined ? {} : { authorization: `Bearer ${this.options.key}` };
  }
}
