// One bucket with typed values. In: a codec, keys, values. Out: the newest value of each key, and its revision, which
// lets one of several writers win. A bucket is a cache or a lease: what it holds can be made again from facts.
// The library's own buckets have the same layout and were tried (nats 2.29.3): their watch ends when the broker restarts
// (kv.test.ts, "tells a watcher what there is, then every change once …") and does not say what expired meanwhile, and their
// requests wait their whole timeout for a broker that is gone, which costs a lease its time (requests.ts has the figures).
import { DeliverPolicy, headers as natsHeaders, nanos, type Msg } from 'nats';
import type { ZodType } from 'zod';
import type { Broker } from '../broker/connect.js';
import { lastOfSubject, type StoredMessage } from '../broker/last-of-subject.js';
import type { Pull } from '../broker/pull.js';
import { orderedPull, readStream } from '../broker/read-stream.js';
import { storeMessage } from '../broker/store-message.js';
import { type BacktalkError, defineErrors, isBacktalkError } from '../errors/backtalk-error.js';
import { systemClock } from '../time/clock.js';
import { type BucketName, bucketStream, bucketSubject } from '../topology/buckets.js';

/** Codecs made from the wire types fit; so does `jsonCodec`. */
export interface KvCodec<T> {
  toJSON(value: T): unknown;
  fromJSON(json: unknown): T;
}

export interface KvEntry<T> {
  readonly value: T;
  readonly revision: number;
}

export interface KvKeyEntry<T> extends KvEntry<T> {
  readonly key: string;
}

export type KvChange<T> =
  /** With the broker's time of the write, milliseconds since 1970. */
  | {
      readonly kind: 'put';
      readonly key: string;
      readonly value: T;
      readonly revision: number;
      readonly timeMs: number;
    }
  /** A key whose deletion is older than the watch is given too, while what there is is given. */
  | { readonly kind: 'deleted'; readonly key: string; readonly revision: number }
  /** It was there before the connection was lost, and is not there now. */
  | { readonly kind: 'expired'; readonly key: string };

export interface KvBucket<T> {
  get(key: string): Promise<KvEntry<T> | undefined>;
  put(key: string, value: T): Promise<number>;
  /** Throws `kv_conflict` when the key has a value. */
  create(key: string, value: T): Promise<number>;
  /** Throws `kv_conflict` when the revision is not the newest. */
  update(key: string, value: T, revision: number): Promise<number>;
  /** With a revision: only if it is the newest. */
  delete(key: string, revision?: number): Promise<void>;
  /**
   * Gives what there is, then every change, over lost connections too. Resolves when what there is has been given.
   * Ends with the signal or the returned function.
   */
  watch(keyFilter: string, onChange: (change: KvChange<T>) => void, signal?: AbortSignal): Promise<() => void>;
  entries(keyFilter?: string): AsyncIterable<KvKeyEntry<T>>;
}

interface KvOptions {
  readonly timeoutMs?: number;
}

const keyPattern = /^[A-Za-z0-9_=-]+(\.[A-Za-z0-9_=-]+)*$/;

export function kvBucket<T>(
  broker: Broker,
  bucket: BucketName,
  codec: KvCodec<T>,
  { timeoutMs = 5_000 }: KvOptions = {},
): KvBucket<T> {
  return new Bucket(broker, bucket, codec, timeoutMs);
}

class Bucket<T> implements KvBucket<T> {
  constructor(
    private readonly broker: Broker,
    private readonly bucket: BucketName,
    private readonly codec: KvCodec<T>,
    private readonly timeoutMs: number,
  ) {}

  async get(key: string): Promise<KvEntry<T> | undefined> {
    const stored = await this.last(key);
    if (stored === undefined || isDeletion(stored)) return undefined;
    return { value: this.decode(key, stored.data), revision: stored.sequence };
  }

  put(key: string, value: T): Promise<number> {
    return this.write(key, this.encode(value));
  }

  async create(key: string, value: T): Promise<number> {
    try {
      return await this.write(key, this.encode(value), 0);
    } catch (error) {
      if (!isBacktalkError(error, 'kv_conflict')) throw error;
      // A deleted key leaves a mark, which is as good as nothing.
      const stored = await this.last(key);
      if (stored === undefined || !isDeletion(stored)) throw error;
      return this.write(key, this.encode(value), stored.sequence);
    }
  }

  update(key: string, value: T, revision: number): Promise<number> {
    return this.write(key, this.encode(value), revision);
  }

  async delete(key: string, revision?: number): Promise<void> {
    await this.write(key, new Uint8Array(), revision, 'DEL');
  }

  async watch(keyFilter: string, onChange: (change: KvChange<T>) => void, signal?: AbortSignal): Promise<() => void> {
    const watcher = new Watcher(this.broker, this.bucket, keyFilter, (change) => {
      if (change.kind !== 'put') return onChange(change);
      let value: T;
      try {
        value = this.decode(change.key, change.value);
      } catch (error) {
        // A watcher goes on past a value that another writer has spoilt.
        this.broker.logger.warn('kv_value_invalid', { bucket: this.bucket, error });
        return;
      }
      onChange({ ...change, value });
    });
    const started = watcher.start();
    const stop = () => watcher.stop();
    signal?.addEventListener('abort', stop, { once: true });
    if (signal?.aborted === true) stop();
    await started;
    return stop;
  }

  async *entries(keyFilter = '>'): AsyncIterable<KvKeyEntry<T>> {
    const stream = bucketStream(this.bucket);
    const filter = bucketSubject(this.bucket, keyFilter);
    for await (const stored of readStream({ broker: this.broker, stream, filter })) {
      const key = keyIn(this.bucket, stored.subject);
      if (isDeletion(stored)) continue;
      yield { key, value: this.decode(key, stored.data), revision: stored.sequence };
    }
  }

  private last(key: string): Promise<StoredMessage | undefined> {
    return lastOfSubject(this.broker, bucketStream(this.bucket), this.subject(key), this.timeoutMs);
  }

  private async write(key: string, data: Uint8Array, expected?: number, operation?: 'DEL'): Promise<number> {
    const subject = this.subject(key);
    const headers = natsHeaders();
    if (operation !== undefined) headers.set('KV-Operation', operation);
    const stored = await storeMessage(this.broker, {
      subject,
      stream: bucketStream(this.bucket),
      data,
      headers,
      timeoutMs: this.timeoutMs,
      doing: `write to bucket ${this.bucket}`,
      ...(expected === undefined ? {} : { expectLast: expected }),
    });
    if (stored.refused) throw kvErrors.kvConflict({ bucket: this.bucket, key });
    return stored.sequence;
  }

  private subject(key: string): string {
    if (!keyPattern.test(key)) throw kvErrors.kvKeyInvalid({ bucket: this.bucket });
    return bucketSubject(this.bucket, key);
  }

  private encode(value: T): Uint8Array {
    return new TextEncoder().encode(JSON.stringify(this.codec.toJSON(value)));
  }

  private decode(key: string, data: Uint8Array): T {
    try {
      const json: unknown = JSON.parse(new TextDecoder().decode(data));
      return this.codec.fromJSON(json);
    } catch (error) {
      throw kvErrors.kvValueInvalid({ bucket: this.bucket, key }, error);
    }
  }
}

const watchSlots = 256;
/** For a bucket that is gone. */
const lookAgainMs = 5_000;

/**
 * Follows the keys of a bucket over lost connections. Every new consumer gives all newest values again: what is known
 * already is not repeated, and what is missing from them has expired.
 */
class Watcher {
  private readonly pull: Pull;
  /** Revision of every key that has a value. */
  private readonly known = new Map<string, number>();
  /** Keys that the present consumer has given, until it has given all. */
  private given: Set<string> | undefined;
  private wasReady = false;
  private isStopped = false;
  private becomeReady: () => void = () => undefined;
  private fail: (error: BacktalkError) => void = () => undefined;

  constructor(
    broker: Broker,
    bucket: BucketName,
    keyFilter: string,
    private readonly onChange: (change: KvChange<Uint8Array>) => void,
  ) {
    this.pull = orderedPull({
      broker,
      stream: bucketStream(bucket),
      slots: watchSlots,
      plan: () => ({
        filter_subject: bucketSubject(bucket, keyFilter),
        deliver_policy: DeliverPolicy.LastPerSubject,
        inactive_threshold: nanos(60_000),
      }),
      onBegin: (pending) => {
        this.given = new Set();
        if (pending === 0) this.allGiven();
      },
      onMessage: (message, { sequence: revision, timeMs, pending }) => {
        this.pull.done();
        const key = keyIn(bucket, message.subject);
        this.given?.add(key);
        if (isDeletion(message)) {
          const isNews = this.known.delete(key) || this.given !== undefined;
          if (isNews) this.onChange({ kind: 'deleted', key, revision });
        } else if (this.known.get(key) !== revision) {
          this.known.set(key, revision);
          this.onChange({ kind: 'put', key, value: message.data, revision, timeMs });
        }
        if (pending === 0) this.allGiven();
      },
      onFatal: (error) => {
        broker.logger.error('kv_watch_lost', { bucket, error });
        if (!this.wasReady || error.code !== 'stream_missing') return this.fail(error);
        // It was there: an operator makes it again, and its revisions begin anew.
        for (const key of this.known.keys()) this.known.set(key, 0);
        systemClock.timer(lookAgainMs, () => {
          if (!this.isStopped) this.pull.again();
        });
      },
    });
  }

  async start(): Promise<void> {
    const ready = new Promise<void>((resolve, reject) => {
      this.becomeReady = resolve;
      this.fail = reject;
    });
    await Promise.all([this.pull.start(), ready]);
    this.wasReady = true;
  }

  stop(): void {
    this.isStopped = true;
    this.pull.stop();
    this.becomeReady();
  }

  private allGiven(): void {
    const { given } = this;
    if (given === undefined) return;
    this.given = undefined;
    for (const key of [...this.known.keys()]) {
      if (given.has(key)) continue;
      this.known.delete(key);
      this.onChange({ kind: 'expired', key });
    }
    this.becomeReady();
  }
}

function isDeletion({ headers }: Msg | StoredMessage): boolean {
  const operation = headers?.get('KV-Operation') ?? '';
  return operation === 'DEL' || operation === 'PURGE';
}

function keyIn(bucket: BucketName, subject: string): string {
  return subject.slice(bucketSubject(bucket, '').length);
}

const kvErrors = defineErrors('kv', {
  kvConflict: {
    code: 'kv_conflict',
    status: 409,
    retry: 'never',
    message: (p: { bucket: string; key: string }) => `Another writer has changed ${p.key} in bucket ${p.bucket}.`,
  },
  kvKeyInvalid: {
    code: 'kv_key_invalid',
    retry: 'never',
    message: (p: { bucket: string }) =>
      `A key of bucket ${p.bucket} is made of letters, digits, "-", "_" and "=", in parts with dots between.`,
  },
  kvValueInvalid: {
    code: 'kv_value_invalid',
    retry: 'never',
    message: (p: { bucket: string; key: string }) => `The value of ${p.key} in bucket ${p.bucket} cannot be read.`,
  },
});

export function jsonCodec<T>(schema: ZodType<T>): KvCodec<T> {
  return { toJSON: (value) => value, fromJSON: (json) => schema.parse(json) };
}
