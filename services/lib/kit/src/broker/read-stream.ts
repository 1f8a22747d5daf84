// Reads streams in order with no gap, whatever happens to the broker, through temporary consumers without acks.
// The library's own were tried (nats 2.29.3): its ordered push consumer, on which its key-value watch and its object reads
// stand, ends with "unable to recreate ordered consumer" when the broker restarts; reader.test.ts ("loses and doubles
// nothing …") and kv.test.ts ("tells a watcher what there is, then every change once …") hold these here to more.
import { randomUUID } from 'node:crypto';
import { AckPolicy, DeliverPolicy, nanos, type ConsumerConfig, type Msg } from 'nats';
import type { BacktalkError } from '../errors/backtalk-error.js';
import { systemClock } from '../time/clock.js';
import type { Broker } from './connect.js';
import type { StoredMessage } from './last-of-subject.js';
import { createConsumer, type MessagePlace, placeOf, Pull } from './pull.js';

interface OrderedOptions {
  readonly broker: Broker;
  readonly stream: string;
  /** How many messages may wait for `done`. */
  readonly slots: number;
  /** Where the next consumer begins; asked at the start and after every disturbance. */
  readonly plan: () => Partial<ConsumerConfig> & { readonly filter_subject: string };
  /** A consumer has begun, and this many messages wait in it. */
  readonly onBegin: (pending: number) => void;
  readonly onMessage: (message: Msg, place: MessagePlace) => void;
  readonly onFatal: (error: BacktalkError) => void;
}

/** Messages of a temporary consumer in order: a gap or any disturbance begins another consumer. */
export class OrderedPull {
  private readonly pull: Pull;
  private consumer = '';
  private consumerSequence = 0;

  constructor(private readonly options: OrderedOptions) {
    const { broker, stream, slots, onFatal } = options;
    const onMessage = (message: Msg) => this.take(message);
    this.pull = new Pull({ broker, stream, slots, ensure: () => this.create(), onMessage, onFatal });
  }

  start(): Promise<void> {
    return this.pull.start();
  }

  stop(): void {
    this.pull.stop();
  }

  again(): void {
    this.pull.again();
  }

  done(): void {
    this.pull.done();
  }

  private async create(): Promise<string> {
    const { broker, stream, plan, onBegin } = this.options;
    const name = `ordered_${randomUUID().replaceAll('-', '')}`;
    // What the one before still sends, the next one gives again.
    this.consumer = '';
    const temporary = { name, ack_policy: AckPolicy.None, mem_storage: true, num_replicas: 1 };
    const { pending } = await createConsumer(broker, stream, Object.assign(temporary, plan()));
    this.consumer = name;
    this.consumerSequence = 0;
    onBegin(pending);
    return name;
  }

  private take(message: Msg): void {
    const place = placeOf(message);
    if (place.consumer === this.consumer && place.consumerSequence === this.consumerSequence + 1) {
      this.consumerSequence += 1;
      this.options.onMessage(message, place);
      return;
    }
    this.pull.done();
    if (place.consumer === this.consumer) this.pull.again();
  }
}

interface StreamReading {
  readonly broker: Broker;
  readonly stream: string;
  readonly filter: string;
  /** First and last sequence that are wanted; left out, all that there is. */
  readonly from?: number;
  readonly until?: number;
  /** Passes over what was stored before, milliseconds since 1970; 0 or left out: nothing. */
  readonly sinceMs?: number;
  readonly headersOnly?: boolean;
  readonly signal?: AbortSignal | undefined;
}

const slots = { payloads: 64, headers: 1024 } as const;
const quietMs = 2_000;

export async function* readStream(reading: StreamReading): AsyncIterable<StoredMessage> {
  const { from = 1, until = Number.MAX_SAFE_INTEGER } = reading;
  if (until < from) return;
  const reader = new StreamReader(reading, from, until);
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
  private readonly ordered: OrderedPull;
  private readonly arrived: StoredMessage[] = [];
  private wake: () => void = () => undefined;
  private last: number;
  private ended = false;
  private failure: BacktalkError | undefined;

  constructor(
    private readonly reading: StreamReading,
    private readonly from: number,
    private readonly until: number,
  ) {
    this.last = from - 1;
    const { broker, stream, filter, headersOnly = false } = reading;
    const shared = { filter_subject: filter, headers_only: headersOnly, inactive_threshold: nanos(10_000) };
    this.ordered = new OrderedPull({
      broker,
      stream,
      slots: headersOnly ? slots.headers : slots.payloads,
      plan: () => Object.assign(this.startPolicy(), shared),
      onBegin: (pending) => {
        if (pending === 0) this.end();
      },
      onMessage: (message, place) => this.take(message, place),
      onFatal: (error) => {
        this.failure = error;
        this.wake();
      },
    });
  }

  start(): Promise<void> {
    return this.ordered.start();
  }

  stop(): void {
    this.ordered.stop();
  }

  async next(): Promise<StoredMessage | undefined> {
    for (;;) {
      this.reading.signal?.throwIfAborted();
      const message = this.arrived.shift();
      if (message !== undefined) {
        this.ordered.done();
        return message;
      }
      if (this.failure !== undefined) throw this.failure;
      if (this.ended) return undefined;
      await this.somethingNew();
    }
  }

  /** By time only as long as nothing has come: from then on, behind what came. */
  private startPolicy(): Partial<ConsumerConfig> {
    const { sinceMs = 0 } = this.reading;
    if (sinceMs > 0 && this.last < this.from)
      return { deliver_policy: DeliverPolicy.StartTime, opt_start_time: new Date(sinceMs).toISOString() };
    return { deliver_policy: DeliverPolicy.StartSequence, opt_start_seq: Math.max(1, this.last + 1) };
  }

  private take({ subject, headers, data }: Msg, { sequence, timeMs, pending }: MessagePlace): void {
    if (this.ended) return this.ordered.done();
    this.last = sequence;
    if (sequence <= this.until) this.arrived.push({ subject, headers, data, sequence, timeMs });
    else this.ordered.done();
    if (pending === 0 || sequence >= this.until) this.end();
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
        this.ordered.again();
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
