// Reads what a stream holds of one filter, in order, up to a given end, through temporary consumers without acks.
// In: stream, filter, first and last sequence. Out: messages, each once, with no gap, whatever happens to the broker.
import { randomUUID } from 'node:crypto';
import { AckPolicy, DeliverPolicy, nanos, type ConsumerConfig, type Msg } from 'nats';
import type { BacktalkError } from '../errors/backtalk-error.js';
import { systemClock } from '../time/clock.js';
import type { Broker } from './connect.js';
import type { StoredMessage } from './last-of-subject.js';
import { createConsumer, placeOf, Pull } from './pull.js';

export interface StreamReading {
  readonly broker: Broker;
  readonly stream: string;
  readonly filter: string;
  readonly from: number;
  /** Passes over what was stored before, milliseconds since 1970; 0 or left out: nothing. */
  readonly sinceMs?: number;
  /** Last sequence that is wanted. */
  readonly until: number;
  readonly headersOnly: boolean;
  readonly signal?: AbortSignal | undefined;
}

const inHandMax = { payloads: 64, headers: 1024 } as const;
const quietMs = 2_000;

export async function* readStream(reading: StreamReading): AsyncIterable<StoredMessage> {
  if (reading.until < reading.from) return;
  const reader = new StreamReader(reading);
  try {
    await reader.start();
    for (;;) {
      const message = await reader.next();
      if (message === undefined) return;
      yield message;
    }
  } finally {
    reader.stop();
  }
}

class StreamReader {
  private readonly pull: Pull;
  private readonly arrived: StoredMessage[] = [];
  private wake: () => void = () => undefined;
  private consumer = '';
  private consumerSequence = 0;
  private last: number;
  private ended = false;
  private failure: BacktalkError | undefined;

  constructor(private readonly reading: StreamReading) {
    this.last = reading.from - 1;
    this.pull = new Pull({
      broker: reading.broker,
      stream: reading.stream,
      slots: reading.headersOnly ? inHandMax.headers : inHandMax.payloads,
      ensure: () => this.create(),
      onMessage: (message) => {
        this.take(message);
      },
      onFatal: (error) => {
        this.failure = error;
        this.wake();
      },
    });
  }

  async start(): Promise<void> {
    await this.pull.start();
  }

  stop(): void {
    this.pull.stop();
  }

  async next(): Promise<StoredMessage | undefined> {
    for (;;) {
      this.reading.signal?.throwIfAborted();
      const message = this.arrived.shift();
      if (message !== undefined) {
        this.pull.done();
        return message;
      }
      if (this.failure !== undefined) throw this.failure;
      if (this.ended) return undefined;
      await this.somethingNew();
    }
  }

  /** Every disturbance gives a new consumer, which goes on behind the last message that came. */
  private async create(): Promise<string> {
    const { broker, stream, filter, headersOnly } = this.reading;
    const name = `read_${randomUUID().replaceAll('-', '')}`;
    // What the one before still sends, the next one gives again.
    this.consumer = '';
    const { pending } = await createConsumer(broker, stream, {
      name,
      filter_subject: filter,
      ...this.startPolicy(),
      ack_policy: AckPolicy.None,
      headers_only: headersOnly,
      mem_storage: true,
      num_replicas: 1,
      inactive_threshold: nanos(10_000),
    });
    this.consumer = name;
    this.consumerSequence = 0;
    if (pending === 0) this.end();
    return name;
  }

  /** By time only as long as nothing has come: from then on, behind what came. */
  private startPolicy(): Pick<ConsumerConfig, 'deliver_policy' | 'opt_start_seq' | 'opt_start_time'> {
    const { from, sinceMs = 0 } = this.reading;
    if (sinceMs > 0 && this.last < from)
      return { deliver_policy: DeliverPolicy.StartTime, opt_start_time: new Date(sinceMs).toISOString() };
    return { deliver_policy: DeliverPolicy.StartSequence, opt_start_seq: Math.max(1, this.last + 1) };
  }

  private take(message: Msg): void {
    const place = placeOf(message);
    const expected = place.consumer === this.consumer && place.consumerSequence === this.consumerSequence + 1;
    if (!expected || this.ended) {
      this.pull.done();
      if (!this.ended && place.consumer === this.consumer) this.pull.again();
      return;
    }
    this.consumerSequence = place.consumerSequence;
    this.last = place.sequence;
    if (place.sequence <= this.reading.until) {
      const { subject, headers, data } = message;
      this.arrived.push({ subject, headers, data, sequence: place.sequence, timeMs: place.timeMs });
    } else {
      this.pull.done();
    }
    if (place.pending === 0 || place.sequence >= this.reading.until) this.end();
    this.wake();
  }

  private end(): void {
    this.ended = true;
    this.wake();
  }

  /** Facts that are purged while they are waited for never come: after a while it looks again. */
  private async somethingNew(): Promise<void> {
    const { signal } = this.reading;
    await new Promise<void>((resolve) => {
      const cancel = systemClock.timer(quietMs, () => {
        this.pull.again();
        this.wake();
      });
      this.wake = () => {
        cancel();
        signal?.removeEventListener('abort', this.wake);
        resolve();
      };
      signal?.addEventListener('abort', this.wake, { once: true });
    });
  }
}

/** Merges flows that are each in order. `before` says which of two messages is the earlier one. */
export async function* mergeInOrder<T>(
  flows: readonly AsyncIterable<T>[],
  before: (left: T, right: T) => boolean,
): AsyncIterable<T> {
  const iterators = flows.map((flow) => flow[Symbol.asyncIterator]());
  try {
    const heads = await Promise.all(iterators.map((iterator) => iterator.next()));
    for (;;) {
      let first: number | undefined;
      let least: T | undefined;
      for (const [index, head] of heads.entries()) {
        if (head.done === true) continue;
        if (least === undefined || before(head.value, least)) [first, least] = [index, head.value];
      }
      const iterator = first === undefined ? undefined : iterators[first];
      if (first === undefined || least === undefined || iterator === undefined) return;
      yield least;
      heads[first] = await iterator.next();
    }
  } finally {
    for (const iterator of iterators) await iterator.return?.();
  }
}
