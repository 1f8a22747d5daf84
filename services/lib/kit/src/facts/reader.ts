// Reads facts without consuming them. In: names and ids. Out: stored facts in the order of the log, to the present end.
// It changes nothing on the broker but for temporary consumers, which vanish by themselves.
import type { BlobStore } from '../blobs/blob-store.js';
import type { Broker } from '../broker/connect.js';
import {
  lastOfSubject,
  lastOfSubjectKnown,
  type StoredMessage,
  surelyLastOfSubject,
} from '../broker/last-of-subject.js';
import { countStream, mergeInOrder, readStream } from '../broker/read-stream.js';
import { brokerError } from '../broker/translate.js';
import { asBacktalkError, type BacktalkError } from '../errors/backtalk-error.js';
import { type Clock, systemClock } from '../time/clock.js';
import { catalogue, type FactIds, type FactName } from '../topology/catalogue.js';
import { subjectFilter } from '../topology/subjects.js';
import { blobHeader, type FactHeaders, fromNatsHeaders, fromWire, type StoredFact } from './stored-fact.js';

export interface ReadOptions<F extends FactName> {
  /** First stream sequence to read; the beginning by default. */
  readonly from?: number;
  /** Passes over what was stored before, by the broker's time: milliseconds since 1970. */
  readonly sinceMs?: number;
  /** Narrows one or more of the names to some ids. */
  readonly filter?: { readonly [N in F]?: FactIds<N> };
  readonly signal?: AbortSignal;
  /** So many facts of each name are asked for at once: other work has its turn of the event loop between them. */
  readonly atOnce?: number;
  /**
   * Called with facts that cannot be read, which are then passed over; without it, the first one ends the reading. A payload that the
   * store has not (yet) is waited for while its fact is young.
   */
  readonly onUnreadable?: (error: BacktalkError, sequence: number, name: F) => void;
}

export interface LastOptions {
  readonly timeoutMs?: number;
  /** Something is done for good where there is no such fact: then a copy of the log that lags must not decide it. */
  readonly sure?: boolean;
}

export interface FactHeadersRow<F extends FactName> {
  readonly name: F;
  readonly sequence: number;
  readonly timeMs: number;
  readonly subject: string;
  readonly headers: FactHeaders;
  /** Digest of a payload that lies in the blob store. */
  readonly payload: string | undefined;
  /** What it takes of its stream's bound, without such a payload. */
  readonly bytes: number;
}

interface Found<F extends FactName> {
  readonly name: F;
  readonly stored: StoredMessage;
}

const lastTimeoutMs = 5_000;
/** Beyond it, a payload that is not there has not come late: it is lost. */
const payloadLateMs = 600_000;

export class FactReader {
  constructor(
    private readonly broker: Broker,
    private readonly blobs?: BlobStore,
    private readonly clock: Clock = systemClock,
  ) {}

  /** The newest fact with these ids; ids left out match anything. */
  async last<N extends FactName>(
    name: N,
    ids: FactIds<N>,
    { timeoutMs = lastTimeoutMs, sure = false }: LastOptions = {},
  ): Promise<StoredFact<N> | undefined> {
    const find = sure ? surelyLastOfSubject : lastOfSubject;
    const stored = await find(this.broker, catalogue[name].stream, subjectFilter(name, ids), timeoutMs);
    return stored === undefined ? undefined : fromWire(name, stored, this.blobs);
  }

  /** The newest fact's headers and subject: a payload that lies in the blob store is not fetched. Sure without the right to read all facts. */
  async lastHeaders<N extends FactName>(
    name: N,
    ids: FactIds<N>,
    { timeoutMs = lastTimeoutMs, sure = false }: LastOptions = {},
  ): Promise<FactHeadersRow<N> | undefined> {
    const find = sure ? lastOfSubjectKnown : lastOfSubject;
    const stored = await find(this.broker, catalogue[name].stream, subjectFilter(name, ids), timeoutMs);
    return stored === undefined ? undefined : headersRow(name, stored);
  }

  /** Facts of one stream come in the order of the log; those of two streams, in the order of the broker's time. */
  async *read<F extends FactName>(names: readonly F[], options: ReadOptions<F> = {}): AsyncIterable<StoredFact<F>> {
    for await (const { name, stored } of this.find(names, options, false)) {
      try {
        yield await fromWire(name, stored, this.blobs);
      } catch (error) {
        const reason = asBacktalkError(error);
        if (options.onUnreadable === undefined || !this.isLost(reason, stored)) throw reason;
        options.onUnreadable(reason, stored.sequence, name);
      }
    }
  }

  private isLost({ code, retry }: BacktalkError, { timeMs }: StoredMessage): boolean {
    return retry === 'never' || (code === 'blob_missing' && this.clock.now() - timeMs > payloadLateMs);
  }

  /** The same without payloads: enough to rebuild an index. */
  async *headers<F extends FactName>(
    names: readonly F[],
    options: ReadOptions<F> = {},
  ): AsyncIterable<FactHeadersRow<F>> {
    for await (const { name, stored } of this.find(names, options, true)) yield headersRow(name, stored);
  }

  /** How many there are, however many. */
  async count(name: FactName): Promise<number> {
    return countStream(this.broker, catalogue[name].stream, subjectFilter(name));
  }

  /** The end is fixed before the first fact is read, so that no effect is seen without its cause. */
  private async *find<F extends FactName>(
    names: readonly F[],
    { from = 1, sinceMs = 0, filter = {}, atOnce, signal }: ReadOptions<F>,
    headersOnly: boolean,
  ): AsyncIterable<Found<F>> {
    const streams = [...new Set(names.map((name) => catalogue[name].stream))];
    const ends = await Promise.all(
      streams.map(async (stream) => {
        try {
          const { state } = await this.broker.jsm.streams.info(stream);
          return [stream, state.last_seq] as const;
        } catch (error) {
          throw brokerError(error, { doing: `read ${stream}`, stream });
        }
      }),
    );
    const endOf = new Map(ends);
    const flows = names.map((name) => {
      const { stream } = catalogue[name];
      const subject = subjectFilter(name, filter[name]);
      const until = endOf.get(stream) ?? 0;
      return named(
        name,
        readStream({ broker: this.broker, stream, filter: subject, from, sinceMs, until, headersOnly, atOnce, signal }),
      );
    });
    yield* mergeInOrder(flows, isBefore);
  }
}

async function* named<F extends FactName>(name: F, flow: AsyncIterable<StoredMessage>): AsyncIterable<Found<F>> {
  for await (const stored of flow) yield { name, stored };
}

function headersRow<F extends FactName>(name: F, stored: StoredMessage): FactHeadersRow<F> {
  const { sequence, timeMs, subject, headers } = stored;
  const payload = headers?.get(blobHeader) ?? '';
  return {
    name,
    sequence,
    timeMs,
    subject,
    headers: fromNatsHeaders(headers),
    payload: payload === '' ? undefined : payload,
    bytes: storedBytes(stored),
  };
}

/** Of a record beside subject, headers and data, as the broker's file store counts. */
const recordBytes = 22 + 8;
const headersLengthBytes = 4;
/** The broker's own headers of what it gives: the first says how long data is that it leaves out. */
const sizeHeader = 'Nats-Msg-Size';
const addedHeaders = new Set([sizeHeader, 'Nats-Stream', 'Nats-Subject', 'Nats-Sequence', 'Nats-Time-Stamp']);

function storedBytes({ subject, headers, data }: StoredMessage): number {
  const dataBytes = Number(headers?.get(sizeHeader) || data.byteLength);
  const names = (headers?.keys() ?? []).filter((name) => !addedHeaders.has(name));
  const lines = names.flatMap((name) => (headers?.values(name) ?? []).map((value) => `${name}: ${value}\r\n`));
  const head = lines.length === 0 ? 0 : headersLengthBytes + Buffer.byteLength(`NATS/1.0\r\n${lines.join('')}\r\n`);
  return recordBytes + Buffer.byteLength(subject) + head + dataBytes;
}

function isBefore<F extends FactName>(left: Found<F>, right: Found<F>): boolean {
  if (catalogue[left.name].stream === catalogue[right.name].stream) {
    return left.stored.sequence < right.stored.sequence;
  }
  return left.stored.timeMs < right.stored.timeMs;
}
