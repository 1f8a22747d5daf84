// The streams and buckets of an installation: made and changed by the admin user, only looked for by services.
// In: bounds. Out: streams as they should be; doing it twice changes nothing.
import {
  DiscardPolicy,
  nanos,
  NatsError,
  RetentionPolicy,
  StorageType,
  StoreCompression,
  type StreamConfig,
} from 'nats';
import { blobStream, descriptionsOfAll, piecesOfAll } from '../blobs/object-bucket.js';
import { advisoriesStream, deadStream, replayStream } from '../facts/permissions.js';
import { bucketNames, buckets, bucketStream, bucketSubject, leaseTtlMs, type BucketName } from '../kv/buckets.js';
import { asBacktalkError } from '../errors/index.js';
import { systemClock } from '../time/index.js';
import type { Broker } from './connect.js';
import { brokerErrors } from './errors.js';
import { brokerError } from './translate.js';

export interface StreamOptions {
  /** Copies of every stream: 3 in a cluster. */
  readonly replicas?: number;
  readonly turnsAgeMsMax?: number;
  /** When the stream of turns is full, new ones are refused and gateways spool. */
  readonly turnsBytesMax?: number;
  /** Bound of the bucket of blobs; by default whatever the broker has room for. */
  readonly blobsBytesMax?: number;
  readonly leaseTtlMs?: number;
  /** Names of those to look at; all when left out. */
  readonly only?: readonly string[];
  /** A cluster that has just started has no leader yet, then too few servers for the copies: how long that may take. */
  readonly withinMs?: number;
}

type StreamPlan = Partial<StreamConfig> & { readonly name: string };

const dayMs = 24 * 60 * 60 * 1000;
const gibibyte = 1024 ** 3;

export interface EnsuredStream {
  readonly stream: string;
  readonly done: 'created' | 'changed' | 'nothing';
  readonly replicas: number;
}

const ensureAgainMs = 1_000;

export async function ensureStreams(
  broker: Broker,
  { withinMs = 0, ...options }: StreamOptions = {},
): Promise<EnsuredStream[]> {
  const deadlineMs = systemClock.now() + withinMs;
  for (;;) {
    try {
      return await ensureOnce(broker, options);
    } catch (error) {
      const { code } = asBacktalkError(error);
      const mayPass = code === 'broker_unavailable' || code === 'stream_copies_impossible';
      if (!mayPass || systemClock.now() + ensureAgainMs > deadlineMs) throw error;
    }
    await systemClock.sleep(ensureAgainMs);
  }
}

async function ensureOnce(broker: Broker, options: StreamOptions): Promise<EnsuredStream[]> {
  const ensured: EnsuredStream[] = [];
  for (const plan of plansFor(options)) {
    if (options.only?.includes(plan.name) === false) continue;
    try {
      ensured.push({ stream: plan.name, done: await addOrUpdate(broker, plan), replicas: options.replicas ?? 1 });
    } catch (error) {
      throw streamError(error, plan, options.replicas ?? 1);
    }
  }
  return ensured;
}

/** What the broker says when it has too few servers, or too little room, for what is asked. */
const tooFewServers: ReadonlySet<number> = new Set([10005, 10074]);
const tooLittleRoom: ReadonlySet<number> = new Set([10023, 10028, 10047]);

function streamError(error: unknown, { name: stream, max_bytes: bytes = 0 }: StreamPlan, copies: number): unknown {
  const code = error instanceof NatsError ? (error.api_error?.err_code ?? 0) : 0;
  if (tooFewServers.has(code)) return brokerErrors.streamCopiesImpossible({ stream, copies }, error);
  if (tooLittleRoom.has(code)) return brokerErrors.streamRoomMissing({ stream, bytes }, error);
  return brokerError(error, { doing: `create stream ${stream}`, stream });
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

async function addOrUpdate(broker: Broker, plan: StreamPlan): Promise<EnsuredStream['done']> {
  const present = await configOf(broker, plan.name);
  if (present === undefined) {
    await broker.jsm.streams.add(plan);
    return 'created';
  }
  const asPlanned = Object.entries(plan).every(
    ([key, value]) => JSON.stringify(Reflect.get(present, key)) === JSON.stringify(value),
  );
  if (asPlanned) return 'nothing';
  await broker.jsm.streams.update(plan.name, plan);
  return 'changed';
}

async function configOf(broker: Broker, stream: string): Promise<StreamConfig | undefined> {
  try {
    return (await broker.jsm.streams.info(stream)).config;
  } catch (error) {
    if (brokerError(error, { doing: `look for stream ${stream}`, stream }).code === 'stream_missing') return undefined;
    throw error;
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
    { ...shared, ...blobsPlan(options) },
    ...bucketNames.map((bucket) => ({ ...shared, ...bucketPlan(bucket, options) })),
  ];
}

/** As the broker's own object clients lay buckets out. */
function blobsPlan({ blobsBytesMax }: StreamOptions): StreamPlan {
  return {
    name: blobStream,
    subjects: [piecesOfAll, descriptionsOfAll],
    max_bytes: blobsBytesMax ?? -1,
    discard: DiscardPolicy.New,
    allow_rollup_hdrs: true,
  };
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
