// Follows the keys of a bucket over lost connections. Every new consumer tells all newest values again: what is known
// already is not repeated, and what is missing from them is told as expired.
import { randomUUID } from 'node:crypto';
import { AckPolicy, DeliverPolicy, nanos, type Msg } from 'nats';
import type { Broker } from '../broker/connect.js';
import type { StoredMessage } from '../broker/last-of-subject.js';
import { createConsumer, type MessagePlace, placeOf, Pull } from '../broker/pull.js';
import type { BacktalkError } from '../errors/backtalk-error.js';
import { type BucketName, bucketStream, bucketSubject } from '../topology/buckets.js';

export type RawChange =
  | {
      readonly kind: 'put';
      readonly key: string;
      readonly data: Uint8Array;
      readonly revision: number;
      readonly timeMs: number;
    }
  | { readonly kind: 'deleted'; readonly key: string; readonly revision: number }
  | { readonly kind: 'expired'; readonly key: string };

export interface BucketWatch {
  readonly ready: Promise<void>;
  stop(): void;
}

const inHandMax = 256;

export function isDeletion({ headers }: Pick<StoredMessage, 'headers'>): boolean {
  const operation = headers?.get('KV-Operation') ?? '';
  return operation === 'DEL' || operation === 'PURGE';
}

export function keyIn(bucket: BucketName, subject: string): string {
  return subject.slice(bucketSubject(bucket, '').length);
}

export function watchBucket(
  broker: Broker,
  bucket: BucketName,
  keyFilter: string,
  onChange: (change: RawChange) => void,
): BucketWatch {
  const watcher = new Watcher(broker, bucket, keyFilter, onChange);
  return { ready: watcher.start(), stop: () => watcher.stop() };
}

class Watcher {
  private readonly filter: string;
  private readonly pull: Pull;
  /** Revision of every key that has a value. */
  private readonly known = new Map<string, number>();
  /** Keys that the present consumer has told, until it has told all. */
  private told: Set<string> | undefined = new Set();
  private consumer = '';
  private consumerSequence = 0;
  private becomeReady: () => void = () => undefined;
  private fail: (error: BacktalkError) => void = () => undefined;

  constructor(
    private readonly broker: Broker,
    private readonly bucket: BucketName,
    keyFilter: string,
    private readonly onChange: (change: RawChange) => void,
  ) {
    this.filter = bucketSubject(bucket, keyFilter);
    this.pull = new Pull({
      broker,
      stream: bucketStream(bucket),
      slots: inHandMax,
      ensure: () => this.create(),
      onMessage: (message) => {
        this.take(message);
      },
      onFatal: (error) => {
        broker.logger.error('kv_watch_lost', { bucket, error });
        this.fail(error);
      },
    });
  }

  async start(): Promise<void> {
    const ready = new Promise<void>((resolve, reject) => {
      this.becomeReady = resolve;
      this.fail = reject;
    });
    await Promise.all([this.pull.start(), ready]);
  }

  stop(): void {
    this.pull.stop();
    this.becomeReady();
  }

  private async create(): Promise<string> {
    const name = `watch_${randomUUID().replaceAll('-', '')}`;
    const { pending } = await createConsumer(this.broker, bucketStream(this.bucket), {
      name,
      filter_subject: this.filter,
      deliver_policy: DeliverPolicy.LastPerSubject,
      ack_policy: AckPolicy.None,
      mem_storage: true,
      num_replicas: 1,
      inactive_threshold: nanos(60_000),
    });
    this.consumer = name;
    this.consumerSequence = 0;
    this.told = new Set();
    if (pending === 0) this.allTold();
    return name;
  }

  private take(message: Msg): void {
    this.pull.done();
    const place = placeOf(message);
    if (place.consumer !== this.consumer) return;
    if (place.consumerSequence !== this.consumerSequence + 1) {
      this.pull.again();
      return;
    }
    this.consumerSequence = place.consumerSequence;
    this.tell(message, place);
    if (this.told !== undefined && place.pending === 0) this.allTold();
  }

  private tell(message: Msg, { sequence: revision, timeMs }: MessagePlace): void {
    const key = keyIn(this.bucket, message.subject);
    this.told?.add(key);
    if (isDeletion({ headers: message.headers })) {
      if (this.known.delete(key)) this.onChange({ kind: 'deleted', key, revision });
    } else if (this.known.get(key) !== revision) {
      this.known.set(key, revision);
      this.onChange({ kind: 'put', key, data: message.data, revision, timeMs });
    }
  }

  private allTold(): void {
    const told = this.told;
    this.told = undefined;
    for (const key of [...this.known.keys()]) {
      if (told?.has(key) === true) continue;
      this.known.delete(key);
      this.onChange({ kind: 'expired', key });
    }
    this.becomeReady();
  }
}
