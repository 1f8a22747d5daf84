// The ledger of one policy in the log: read whole at the start, then written one fact at a time, each following the one it knows.
// A lost race throws `fact_superseded`: then the log is read again.
import {
  startSpan,
  type BacktalkError,
  type FactName,
  type FactPublisher,
  type FactReader,
  type Trace,
  type TurnIds,
} from '@backtalk/kit';
import type { BatchClosed, WeightsTrained } from '@backtalk/proto/facts';

import { BatchChain } from '../domain/batch-chain.js';
import { forgottenIn, type Leaving } from '../domain/forgotten-people.js';
import type { StoredChange } from '../domain/lesson-changes.js';
import { isOfTurn } from '../domain/rehearsal.js';
import { SettledTurns, turnsOf } from '../domain/settled-turns.js';
import { VersionLine } from '../domain/version-line.js';
import { SampleMarks } from './sample-marks.js';

export interface LedgerState {
  readonly chain: BatchChain;
  readonly line: VersionLine;
  readonly settled: SettledTurns;
  /** Where in the log the last change of a lesson stands, as far as is known here. */
  changedAt: number;
  /** People who have left, and where in the log that stands: of what was closed before, nothing of theirs is taken once more. */
  readonly forgotten: Leaving[];
  /** Of the newest batch: its step goes on in it. */
  trace?: Trace;
}

const ledgerFacts = ['batchClosed', 'weightsTrained', 'weightsStaged', 'lessonChanged'] as const;

/** Members of a cluster need not agree on the time to the second. */
const clocksDifferMs = 3_600_000;

export class Ledger {
  private readonly marks: SampleMarks;

  constructor(
    readonly policy: string,
    private readonly reader: FactReader,
    private readonly publisher: FactPublisher,
    private readonly rememberedMax?: number,
  ) {
    this.marks = new SampleMarks(policy, reader, publisher);
  }

  async read(signal: AbortSignal): Promise<LedgerState> {
    const { policy } = this;
    // Of a turn in a batch from before the log's first judged fact, nothing is left that could be taken again.
    const sinceMs = ((await this.firstJudgedMs(signal)) ?? Infinity) - clocksDifferMs;
    const chain = new BatchChain(policy);
    const line = new VersionLine(policy);
    const settled = new SettledTurns(this.rememberedMax);
    const ledger: LedgerState = { chain, line, settled, changedAt: 0, forgotten: [] };
    const ids = { policy };
    const filter = { batchClosed: ids, weightsTrained: ids, weightsStaged: ids, lessonChanged: ids };
    const onUnreadable = (error: BacktalkError, sequence: number, name: FactName) => {
      if (name !== 'weightsTrained') throw error;
      chain.lost(sequence);
    };
    for await (const fact of this.reader.read(ledgerFacts, { filter, signal, onUnreadable })) {
      switch (fact.name) {
        case 'batchClosed':
          chain.closed(fact.message, fact.sequence);
          if (fact.message.marked || fact.timeMs >= sinceMs) settled.add(fact.message);
          ledger.trace = fact.trace;
          break;
        case 'weightsTrained':
          chain.trained(fact.message, fact.sequence);
          line.trained(fact.message, fact.timeMs);
          break;
        case 'weightsStaged':
          line.staged(fact.message, fact.sequence);
          break;
        case 'lessonChanged':
          ledger.changedAt = fact.sequence;
          ledger.forgotten.push(...forgottenIn([fact]));
      }
    }
    return ledger;
  }

  /** What was said of lessons and is not in the ledger yet, in the order of the log, which alone says what there is. */
  async changes({ chain, changedAt }: LedgerState): Promise<StoredChange[]> {
    const from = (chain.last()?.lessonsThrough ?? 0) + 1;
    const changes: StoredChange[] = [];
    if (changedAt < from) return changes;
    const filter = { lessonChanged: { policy: this.policy } };
    for await (const { message, sequence, timeMs } of this.reader.read(['lessonChanged'], { filter, from }))
      changes.push({ message, sequence, timeMs });
    return changes;
  }

  private async firstJudgedMs(signal: AbortSignal): Promise<number | undefined> {
    const filter = { turnJudged: { policy: this.policy } };
    for await (const { timeMs } of this.reader.headers(['turnJudged'], { filter, signal })) return timeMs;
    return undefined;
  }

  /** Whether some batch has taken or settled the turn, however long ago. */
  async hasTaken(ledger: LedgerState, ids: TurnIds): Promise<boolean> {
    if (ledger.settled.has(ids.turn)) return true;
    const batch = await this.marks.batchOf(ids);
    return batch !== undefined && this.isIn(ledger, batch, ids.turn);
  }

  /** Marks the turns of a batch that is about to close. Out: those that another batch has. */
  claim(ledger: LedgerState, { number, samples, settled }: BatchClosed): Promise<string[]> {
    return this.marks.claim([...samples.filter(isOfTurn), ...settled], number, (batch, turn) =>
      this.isIn(ledger, batch, turn),
    );
  }

  /** Undefined where the log no longer holds it. */
  async batch({ chain }: LedgerState, number: number): Promise<BatchClosed | undefined> {
    const from = chain.sequenceOf(number);
    if (from === undefined) return undefined;
    const filter = { batchClosed: { policy: this.policy } };
    for await (const { message } of this.reader.read(['batchClosed'], { filter, from }))
      return message.number === number ? message : undefined;
    return undefined;
  }

  /** The newest before it that the log still holds; undefined for the first. */
  async batchBefore(ledger: LedgerState, number: number): Promise<BatchClosed | undefined> {
    for (let at = number - 1; at > 0; at -= 1) {
      const found = await this.batch(ledger, at);
      if (found !== undefined) return found;
    }
    return undefined;
  }

  /** Of a row of numbers, both ends with it, those that the log still holds. */
  async *batches(ledger: LedgerState, first: number, last: number): AsyncGenerator<BatchClosed> {
    for (let at = first; at <= last; at += 1) {
      const found = await this.batch(ledger, at);
      if (found !== undefined) yield found;
    }
  }

  private async isIn(ledger: LedgerState, batch: number, turn: string): Promise<boolean> {
    if (ledger.settled.has(turn)) return true;
    // Not closed, as far as this trainer knows: where it is wrong, its own batch cannot close.
    if (ledger.chain.sequenceOf(batch) === undefined || ledger.settled.remembers(batch)) return false;
    const closed = await this.batch(ledger, batch);
    return closed === undefined || turnsOf(closed).includes(turn);
  }

  /** Traces: of the samples, in the order of arrival. */
  async close(ledger: LedgerState, batch: BatchClosed, [first, ...others]: readonly Trace[] = []): Promise<void> {
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
    ledger.settled.add(batch);
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
