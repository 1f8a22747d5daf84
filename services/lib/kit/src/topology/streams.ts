// The streams and buckets of an installation, as they should be. In: bounds. Out: their configurations. Pure.
import { DiscardPolicy, nanos, RetentionPolicy, StorageType, StoreCompression, type StreamConfig } from 'nats';
import {
  blobDescriptions,
  blobPieces,
  blobStream,
  type BucketName,
  bucketNames,
  buckets,
  bucketStream,
  bucketSubject,
  leaseTtlMs,
} from './buckets.js';
import { catalogue, factNames, type FactStream } from './catalogue.js';

/** Facts that could not be handled, by service. */
export const deadStream = 'DEAD';
/** Dead letters that an operator gives back to the service that failed. */
export const replayStream = 'REPLAY';
const advisoriesStream = 'ADVISORIES';

export interface StreamBounds {
  /** Copies of every stream: 3 in a cluster. */
  readonly replicas?: number;
  readonly turnsAgeMsMax?: number;
  /** When the stream of turns is full, new ones are refused and gateways spool. */
  readonly turnsBytesMax?: number;
  /** Bound of the bucket of blobs; by default whatever the broker has room for. */
  readonly blobsBytesMax?: number;
  readonly leaseTtlMs?: number;
}

export type StreamPlan = Partial<StreamConfig> & { readonly name: string };

const dayMs = 24 * 60 * 60 * 1000;
const gibibyte = 1024 ** 3;

/** Every stream of an installation, as it should be. */
export function streamPlans(options: StreamBounds): StreamPlan[] {
  const shared = { storage: StorageType.File, num_replicas: options.replicas ?? 1, allow_direct: true } as const;
  return [
    {
      ...shared,
      name: 'TURNS',
      subjects: subjectsOf('TURNS'),
      max_age: nanos(options.turnsAgeMsMax ?? 30 * dayMs),
      max_bytes: options.turnsBytesMax ?? 8 * gibibyte,
      discard: DiscardPolicy.New,
      compression: StoreCompression.S2,
    },
    {
      ...shared,
      name: 'WEIGHTS',
      subjects: subjectsOf('WEIGHTS'),
      discard: DiscardPolicy.New,
      // Each batch says all lessons again: 500 take half a megabyte, and on disk a tenth of that.
      compression: StoreCompression.S2,
    },
    {
      ...shared,
      name: deadStream,
      subjects: ['backtalk.dead.>'],
      max_age: nanos(30 * dayMs),
      max_msgs: 100_000,
      discard: DiscardPolicy.Old,
    },
    {
      ...shared,
      name: replayStream,
      subjects: ['backtalk.replay.>'],
      retention: RetentionPolicy.Workqueue,
      max_msgs: 100_000,
      discard: DiscardPolicy.New,
    },
    {
      ...shared,
      name: advisoriesStream,
      subjects: ['$JS.EVENT.ADVISORY.CONSUMER.MAX_DELIVERIES.>', '$JS.EVENT.ADVISORY.CONSUMER.MSG_TERMINATED.>'],
      max_age: nanos(7 * dayMs),
      max_msgs: 10_000,
      discard: DiscardPolicy.Old,
    },
    // As the broker's own object clients lay buckets out.
    {
      ...shared,
      name: blobStream,
      subjects: [blobPieces, blobDescriptions],
      max_bytes: options.blobsBytesMax ?? -1,
      discard: DiscardPolicy.New,
      allow_rollup_hdrs: true,
    },
    ...bucketNames.map((bucket) => ({ ...shared, ...bucketPlan(bucket, options) })),
  ];
}

/** Each noun once: a stream takes every fact of its nouns. */
function subjectsOf(stream: FactStream): string[] {
  const nouns = factNames.filter((name) => catalogue[name].stream === stream).map((name) => catalogue[name].subject);
  return [...new Set(nouns.map((subject) => `backtalk.${subject.split('.')[0]}.>`))];
}

/** As the broker's own key-value clients lay buckets out, so that its command-line tool can read them. */
function bucketPlan(bucket: BucketName, options: StreamBounds): StreamPlan {
  const ttlMs = buckets[bucket].expires ? (options.leaseTtlMs ?? leaseTtlMs) : 0;
  return {
    name: bucketStream(bucket),
    subjects: [bucketSubject(bucket, '>')],
    max_msgs_per_subject: 1,
    max_age: nanos(ttlMs),
    discard: DiscardPolicy.New,
    allow_rollup_hdrs: true,
    deny_delete: true,
    duplicate_window: nanos(ttlMs === 0 ? 120_000 : ttlMs),
  };
}
