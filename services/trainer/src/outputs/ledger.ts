// The ledger of one policy in the log: read whole at the start, then written one fact at a time, each following the one it knows.
// A lost race throws `fact_superseded`: then the log is read again.
import { startSpan, type FactPublisher, type FactReader, type Trace } from '@backtalk/kit';
import type { BatchClosed, WeightsTrained } from '@backtalk/proto/facts';

import { BatchChain } from '../domain/batch-chain.js';
import { SettledTurns } from '../domain/settled-turns.js';
import { VersionLine } from '../domain/version-line.js';

export interface LedgerState {
  readonly chain: BatchChain;
  readonly line: VersionLine;
  readonly settled: SettledTurns;
  /** Of the newest batch: its step goes on in it. */
  trace?: Trace;
}

export class Ledger {
  constructor(
    readonly policy: string,
    private readonly reader: FactReader,
    private readonly publisher: FactPublisher,
  ) {}

  /** `openSinceMs`: time of the oldest judged fact above the ack floor; batches closed long before it need not be remembered. */
  async read(openSinceMs: number, signal: AbortSignal): Promise<LedgerState> {
    const { policy } = this;
    const chain = new BatchChain(policy);
    const line = new VersionLine(policy);
    const settled = new SettledTurns();
    const ledger: LedgerState = { chain, line, settled };
    const filter = { batchClosed: { policy }, weightsTrained: { policy }, weightsStaged: { policy } };
    for await (const fact of this.reader.read(['batchClosed', 'weightsTrained', 'weightsStaged'], { filter, signal })) {
      switch (fact.name) {
        case 'batchClosed':
          chain.closed(fact.message, fact.sequence);
          settled.add(fact.message, fact.timeMs, openSinceMs);
          ledger.trace = fact.trace;
          break;
        case 'weightsTrained':
          chain.trained(fact.message, fact.sequence);
          line.trained(fact.message, fact.timeMs);
          break;
        case 'weightsStaged':
          line.staged(fact.message, fact.sequence);
      }
    }
    return ledger;
  }

  /** Broker's time of the first judged fact from a sequence on; undefined when there is none. */
  async judgedTimeFrom(sequence: number, signal: AbortSignal): Promise<number | undefined> {
    const filter = { turnJudged: { policy: this.policy } };
    for await (const { timeMs } of this.reader.headers(['turnJudged'], { from: sequence, filter, signal }))
      return timeMs;
    return undefined;
  }

  /** Where the first revision of a turn stands in the log. */
  async firstJudged(turn: string): Promise<number | undefined> {
    return (await this.reader.last('turnJudged', { policy: this.policy, turn, revision: 0 }))?.sequence;
  }

  /** Traces: of the samples, in the order of arrival. */
  async close(
    ledger: LedgerState,
    batch: BatchClosed,
    nowMs: number,
    [first, ...others]: readonly Trace[] = [],
  ): Promise<void> {
    const span =
      first === undefined ? undefined : startSpan('close batch', { kind: 'internal', parent: first, links: others });
    const { sequence } = await this.publisher
      .publish('batchClosed', batch, {
        expectSequence: ledger.chain.batchSequence(),
        ...(span === undefined ? {} : { trace: span.trace }),
      })
      .finally(() => span?.end());
    if (span !== undefined) ledger.trace = span.trace;
    ledger.chain.closed(batch, sequence);
    ledger.settled.add(batch, nowMs);
  }

  async trained(ledger: LedgerState, fact: WeightsTrained, nowMs: number, trace?: Trace): Promise<void> {
    const { sequence } = await this.publisher.publish('weightsTrained', fact, {
      expectSequence: ledger.chain.trainedSequence(),
      ...(trace === undefined ? {} : { trace }),
    });
    ledger.chain.trained(fact, sequence);
    ledger.line.trained(fact, nowMs);
  }
}
