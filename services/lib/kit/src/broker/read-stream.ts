// Reads streams in order with no gap, whatever happens to the broker, through temporary consumers without acks.
// The library's own were tried (nats 2.29.3): its ordered push consumer, on which its key-value watch and its object reads
// stand, ends with "unable to recreate ordered consumer" when the broker restarts; reader.test.ts ("loses and doubles
// nothing …") and kv.test.ts ("tells a watcher what there is, then every change once …") hold these here to more.
import { randomUUID } from 'node:crypto';
import { AckPolicy, DeliverPolicy, nanos, type ConsumerConfig, type Msg } from 'nats';
import type { BacktalkError } from '../errors/backtalk-error.js';
import { systemClock, untilAborted } from '../time/clock.js';
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
export function orderedPull({ broker, stream, slots, plan, onBegin, onMessage, onFatal }: OrderedOptions): Pull {
  let consumer = '';
  let consumerSequence = 0;
  const pull = new Pull({
    broker,
    stream,
    slots,
    onFatal,
    ensure: async () => {
      const name = temporaryName(broker);
      // What the one before still sends, the next one gives again.
      consumer = '';
      const temporary = { name, ack_policy: AckPolicy.None, mem_storage: true, num_replicas: 1 };
      const { pending } = await createConsumer(broker, stream, Object.assign(temporary, plan()));
      consumer = name;
      consumerSequence = 0;
      onBegin(pending);
      return name;
    },
    onMessage: (message) => {
      const place = placeOf(message);
      if (place.consumer === consumer && place.consumerSequence === consumerSequence + 1) {
        consumerSequence += 1;
        onMessage(message, place);
        return;
      }
      pull.done();
      if (place.consumer === consumer) pull.again();
    },
  });
  return pull;
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
  /** So many messages are asked for at once: other work has its turn of the event loop between them. */
  readonly atOnce?: number | undefined;
  readonly signal?: AbortSignal | undefined;
}

const slots = { payloads: 64, headers: 1024 } as const;
const quietMs = 2_000;

export async function* readStream(reading: StreamReading): AsyncIterable<StoredMessage> {
  const { from = 1, until = Number.MAX_SAFE_INTEGER } = reading;
  if (until < from) return;
  yield* new StreamReader(reading, from, until).messages();
}

class StreamReader {
  private readonly pull: Pull;
  private readonly arrived: StoredMessage[] = [];
  private wake: () => void = () => undefined;
  private last: number;
  private ended = false;
  private failure: BacktalkError | undefined;
  private readonly atOnce: number;

  constructor(
    private readonly reading: StreamReading,
    from: number,
    until: number,
  ) {
    this.last = from - 1;
    const { broker, stream, filter, headersOnly = false, sinceMs = 0 } = reading;
    this.atOnce = reading.atOnce ?? (headersOnly ? slots.headers : slots.payloads);
    const shared = { filter_subject: filter, headers_only: headersOnly, inactive_threshold: nanos(10_000) };
    this.pull = orderedPull({
      broker,
      stream,
      slots: this.atOnce,
      plan: () => {
        // By time only as long as nothing has come: from then on, behind what came.
        const start =
          sinceMs > 0 && this.last < from
            ? { deliver_policy: DeliverPolicy.StartTime, opt_start_time: new Date(sinceMs).toISOString() }
            : { deliver_policy: DeliverPolicy.StartSequence, opt_start_seq: Math.max(1, this.last + 1) };
        return Object.assign(start, shared);
      },
      onBegin: (pending) => {
        if (pending > 0) return;
        this.ended = true;
        this.wake();
      },
      onMessage: ({ subject, headers, data }, { sequence, timeMs, pending }) => {
        if (this.ended) return this.pull.done();
        this.last = sequence;
        if (sequence <= until) this.arrived.push({ subject, headers, data, sequence, timeMs });
        else this.pull.done();
        if (pending === 0 || sequence >= until) this.ended = true;
        this.wake();
      },
      onFatal: (error) => {
        this.failure = error;
        this.wake();
      },
    });
  }

  async *messages(): AsyncIterable<StoredMessage> {
    const { signal } = this.reading;
    try {
      await untilAborted(this.pull.start(), signal);
      for (;;) {
        signal?.throwIfAborted();
        const message = this.arrived.shift();
        if (message !== undefined) {
          this.pull.done();
          yield message;
        } else if (this.failure !== undefined) {
          throw this.failure;
        } else if (this.ended) {
          return;
        } else {
          await this.somethingNew();
        }
      }
    } finally {
      this.pull.stop();
    }
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

/** How many messages of a stream there are, as the broker counts them: none is read. */
export async function countStream(broker: Broker, stream: string, filter: string): Promise<number> {
  const { pending } = await createConsumer(broker, stream, {
    name: temporaryName(broker),
    ack_policy: AckPolicy.None,
    mem_storage: true,
    num_replicas: 1,
    filter_subject: filter,
    inactive_threshold: nanos(1_000),
  });
  return pending;
}

function temporaryName({ user }: Broker): string {
  return `ordered_${user}_${randomUUID().replaceAll('-', '')}`;
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
