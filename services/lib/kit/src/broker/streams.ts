// Makes and changes the streams and buckets of an installation, for the admin user; services only look for them. Doing it
// twice changes nothing.
import { NatsError } from 'nats';
import { asBacktalkError } from '../errors/backtalk-error.js';
import { Said } from '../telemetry/logger.js';
import { type Clock, systemClock } from '../time/clock.js';
import { type StreamBounds, type StreamPlan, streamPlans } from '../topology/streams.js';
import type { Broker } from './connect.js';
import { brokerErrors } from './errors.js';
import { brokerError } from './translate.js';

export interface StreamOptions extends StreamBounds {
  /** Names of those to look at; all when left out. */
  readonly only?: readonly string[];
  /** A cluster that has just started has no leader yet, then too few servers for the copies: how long that may take. */
  readonly withinMs?: number;
  readonly signal?: AbortSignal;
}

export interface EnsuredStream {
  readonly stream: string;
  readonly done: 'created' | 'changed' | 'nothing';
  readonly replicas: number;
}

const ensureAgainMs = 1_000;

export async function ensureStreams(
  broker: Broker,
  { withinMs = 0, signal, ...options }: StreamOptions = {},
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
    await systemClock.sleep(ensureAgainMs, signal);
  }
}

/** What the broker says when it has too few servers, or too little room, for what is asked. */
const tooFewServers: ReadonlySet<number> = new Set([10005, 10074]);
const tooLittleRoom: ReadonlySet<number> = new Set([10023, 10028, 10047]);

async function ensureOnce(broker: Broker, options: StreamOptions): Promise<EnsuredStream[]> {
  const ensured: EnsuredStream[] = [];
  for (const plan of streamPlans(options)) {
    if (options.only?.includes(plan.name) === false) continue;
    try {
      ensured.push({ stream: plan.name, done: await addOrUpdate(broker, plan), replicas: options.replicas ?? 1 });
    } catch (error) {
      const { name: stream, max_bytes: bytes = 0 } = plan;
      const code = error instanceof NatsError ? (error.api_error?.err_code ?? 0) : 0;
      if (tooFewServers.has(code))
        throw brokerErrors.streamCopiesImpossible({ stream, copies: options.replicas ?? 1 }, error);
      if (tooLittleRoom.has(code)) throw brokerErrors.streamRoomMissing({ stream, bytes }, error);
      throw brokerError(error, { doing: `create stream ${stream}`, stream });
    }
  }
  return ensured;
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

interface AwaitOptions {
  readonly clock: Clock;
  readonly signal: AbortSignal;
  /** The first stream that is missing, each time that another one is. */
  readonly onMissing: (stream: string) => void;
}

const lookAgainMs = 1_000;

/** Waits until every stream is there: what makes them may start last. */
export async function awaitStreams(broker: Broker, streams: readonly string[], options: AwaitOptions): Promise<void> {
  const { clock, signal, onMissing } = options;
  const said = new Said(clock);
  for (const stream of streams) {
    for (;;) {
      try {
        await checkStreams(broker, [stream]);
        break;
      } catch (error) {
        signal.throwIfAborted();
        const { code, retry } = asBacktalkError(error);
        if (code !== 'stream_missing' && retry !== 'later') throw error;
        onMissing(`stream ${stream}`);
        if (said.isDue(stream)) broker.logger.warn('stream_awaited', { stream, reason: code });
      }
      await clock.sleep(lookAgainMs, signal);
    }
  }
}

async function addOrUpdate(broker: Broker, plan: StreamPlan): Promise<EnsuredStream['done']> {
  const present = await broker.jsm.streams.info(plan.name).catch((error: unknown) => {
    const { code } = brokerError(error, { doing: `look for stream ${plan.name}`, stream: plan.name });
    if (code === 'stream_missing') return undefined;
    throw error;
  });
  if (present === undefined) {
    await broker.jsm.streams.add(plan);
    return 'created';
  }
  const asPlanned = Object.entries(plan).every(
    ([key, value]) => JSON.stringify(Reflect.get(present.config, key)) === JSON.stringify(value),
  );
  if (asPlanned) return 'nothing';
  await broker.jsm.streams.update(plan.name, plan);
  return 'changed';
}
