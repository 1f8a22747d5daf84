// The streams and buckets of an installation: made and changed by the admin user, only looked for by services.
// In: bounds. Out: streams as they should be; doing it twice changes nothing.
import { DiscardPolicy, nanos, RetentionPolicy, StorageType, StoreCompression, type StreamConfig } from 'nats';
import { advisoriesStream, deadStream, replayStream } from '../facts/permissions.js';
import { bucketNames, buckets, bucketStream, bucketSubject, leaseTtlMs, type BucketName } from '../kv/buckets.js';
import type { Broker } from './connect.js';
import { brokerError, isStreamNameInUse } from './translate.js';

export interface StreamOptions {
  /** Copies of every stream: 3 in a cluster. */
  readonly replicas?: number;
  readonly turnsAgeMsMax?: number;
  /** When the stream of turns is full, new ones are refused and gateways spool. */
  readonly turnsBytesMax?: number;
  readonly leaseTtlMs?: number;
}

type StreamPlan = Partial<StreamConfig> & { readonly name: string };

const dayMs = 24 * 60 * 60 * 1000;
const gibibyte = 1024 ** 3;

export async function ensureStreams(broker: Broker, options: StreamOptions = {}): Promise<void> {
  for (const plan of plansFor(options)) {
    try {
      await addOrUpdate(broker, plan);
    } catch (error) {
      throw brokerError(error, { doing: `create stream ${plan.name}`, stream: plan.name });
    }
  }
}

/** Throws `stream_missing` for the first that is not there. For services, which may not create any. */
export async function checkStreams(broker: Broker, streams: readonly string[]): Promise<void> {
  for (const stream of streams) {
    try {
      await broker.jsm.streams.info(stream);
    } catch (error) {
      throw brokerError(error, { doing: `look for stream ${stream}`, stream });
    }
  }
}

async function addOrUpdate(broker: Broker, plan: StreamPlan): Promise<void> {
  try {
    await broker.jsm.streams.add(plan);
  } catch (error) {
    if (!isStreamNameInUse(error)) throw error;
    await broker.jsm.streams.update(plan.name, plan);
  }
}

function plansFor(options: StreamOptions): StreamPlan[] {
  const shared = { storage: StorageType.File, num_replicas: options.replicas ?? 1, allow_direct: true } as const;
  return [
    {
      ...shared,
      name: 'TURNS',
      subjects: ['backtalk.turn.>', 'backtalk.session.>', 'backtalk.feedback.>', 'backtalk.person.>'],
      max_age: nanos(options.turnsAgeMsMax ?? 30 * dayMs),
      max_bytes: options.turnsBytesMax ?? 8 * gibibyte,
      discard: DiscardPolicy.New,
      compression: StoreCompression.S2,
    },
    { ...shared, name: 'WEIGHTS', subjects: ['backtalk.batch.>', 'backtalk.weights.>'], discard: DiscardPolicy.New },
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
    ...bucketNames.map((bucket) => ({ ...shared, ...bucketPlan(bucket, options) })),
  ];
}

/** As the broker's own key-value clients lay buckets out, so that its command-line tool can read them. */
function bucketPlan(bucket: BucketName, options: StreamOptions): StreamPlan {
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
