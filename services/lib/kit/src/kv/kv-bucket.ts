// One bucket with typed values. In: a codec, keys, values. Out: the newest value of each key, and its revision, which
// lets one of several writers win. A bucket is a cache or a lease: what it holds can be made again from facts.
import { headers as natsHeaders } from 'nats';
import type { ZodType } from 'zod';
import type { Broker } from '../broker/connect.js';
import { lastOfSubject, type StoredMessage } from '../broker/last-of-subject.js';
import { readStream } from '../broker/read-stream.js';
import { storeMessage } from '../broker/store-message.js';
import { defineErrors, isBacktalkError } from '../errors/backtalk-error.js';
import { type BucketName, bucketStream, bucketSubject } from '../topology/buckets.js';
import { isDeletion, keyIn, watchBucket } from './kv-watch.js';

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
   * Tells what there is, then every change, over lost connections too. Resolves when what there is has been told.
   * Ends with the signal or the returned function.
   */
  watch(keyFilter: string, onChange: (change: KvChange<T>) => void, signal?: AbortSignal): Promise<() => void>;
  entries(keyFilter?: string): AsyncIterable<KvKeyEntry<T>>;
}

export interface KvOptions {
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
    const { stop, ready } = watchBucket(this.broker, this.bucket, keyFilter, (change) => {
      if (change.kind !== 'put') return onChange(change);
      const value = this.decodeOrWarn(change.key, change.data);
      if (value !== undefined) onChange({ ...change, value });
    });
    signal?.addEventListener('abort', stop, { once: true });
    if (signal?.aborted === true) stop();
    await ready;
    return stop;
  }

  async *entries(keyFilter = '>'): AsyncIterable<KvKeyEntry<T>> {
    const stream = bucketStream(this.bucket);
    const reading = {
      broker: this.broker,
      stream,
      filter: bucketSubject(this.bucket, keyFilter),
      from: 1,
      until: Number.MAX_SAFE_INTEGER,
      headersOnly: false,
    };
    for await (const stored of readStream(reading)) {
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

  /** A watcher goes on past a value that somebody else has spoilt. */
  private decodeOrWarn(key: string, data: Uint8Array): T | undefined {
    try {
      return this.decode(key, data);
    } catch (error) {
      this.broker.logger.warn('kv_value_invalid', { bucket: this.bucket, error });
      return undefined;
    }
  }
}

export const kvErrors = defineErrors('kv', {
  kvConflict: {
    code: 'kv_conflict',
    status: 409,
    retry: 'never',
    message: (p: { bucket: string; key: string }) => `Somebody else has changed ${p.key} in bucket ${p.bucket}.`,
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
