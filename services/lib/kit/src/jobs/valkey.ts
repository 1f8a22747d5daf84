// Connections to Valkey with bounded tempers. In: a URL and a role. Out: a client that reconnects within two seconds of
// Valkey's return. Askers fail fast while Valkey is away; waiters (workers) wait for ever.
import { Redis } from 'ioredis';
import { asBacktalkError, BacktalkError } from '../errors/index.js';
import type { Logger } from '../telemetry/index.js';
import { jobErrors } from './errors.js';

export type ValkeyRole = 'asker' | 'waiter';

export interface ValkeyOptions {
  readonly url: string;
  /** Shown in Valkey's own client list. */
  readonly name: string;
  readonly logger: Logger;
  /** How long one command may take; for askers. */
  readonly commandTimeoutMs?: number;
}

/** The part of the client's options that is used, as both ioredis and BullMQ take it. */
export interface ValkeyConnection {
  host: string;
  port: number;
  db: number;
  connectionName: string;
  connectTimeout: number;
  keepAlive: number;
  socketTimeout: number;
  retryStrategy: (times: number) => number;
  maxRetriesPerRequest: number | null;
  enableOfflineQueue: boolean;
  commandTimeout?: number;
  username?: string;
  password?: string;
  tls?: object;
}

const reconnectMostMs = 2_000;

export function connectionOptions(
  { url, name, commandTimeoutMs = 2_000 }: Omit<ValkeyOptions, 'logger'>,
  role: ValkeyRole,
): ValkeyConnection {
  const { hostname, port, username, password, protocol, pathname } = new URL(url);
  const shared = {
    host: hostname,
    port: Number(port === '' ? 6379 : port),
    db: Number(pathname.slice(1) || 0),
    connectionName: name,
    connectTimeout: 5_000,
    keepAlive: 5_000,
    // A peer that has stopped without closing is noticed: workers ask at least every five seconds.
    socketTimeout: 12_000,
    retryStrategy: (times: number) => Math.min(times * 100, reconnectMostMs),
    ...(username === '' ? {} : { username: decodeURIComponent(username) }),
    ...(password === '' ? {} : { password: decodeURIComponent(password) }),
    ...(protocol === 'rediss:' ? { tls: {} } : {}),
  };
  if (role === 'waiter') return { ...shared, enableOfflineQueue: true, maxRetriesPerRequest: null };
  return { ...shared, enableOfflineQueue: false, maxRetriesPerRequest: 1, commandTimeout: commandTimeoutMs };
}

/** A client for a service's own working memory; it connects in the background and fails fast until it has. */
export function connectValkey(options: ValkeyOptions): Redis {
  const client = new Redis(connectionOptions(options, 'asker'));
  logErrors(client, options);
  return client;
}

/** Throws `valkey_evicts` when Valkey would drop jobs to make room. */
export async function checkValkey(client: Redis): Promise<void> {
  let policy: string | undefined;
  try {
    const answer = await client.config('GET', 'maxmemory-policy');
    policy = Array.isArray(answer) ? String(answer[1]) : undefined;
  } catch (error) {
    throw valkeyError(error, 'check its settings');
  }
  if (policy !== undefined && policy !== 'noeviction') throw jobErrors.valkeyEvicts({ policy });
}

/** One line for each loss of the connection, not one for each attempt to mend it. */
export function logErrors(
  source: { on(event: 'error', fn: (error: Error) => void): unknown },
  options: Pick<ValkeyOptions, 'name' | 'logger'>,
): void {
  let last = '';
  source.on('error', (error) => {
    const reason = 'code' in error && typeof error.code === 'string' ? error.code : error.name;
    if (reason === last) return;
    last = reason;
    options.logger.warn('valkey_error', { name: options.name, reason });
  });
}

export function valkeyError(thrown: unknown, doing: string): BacktalkError {
  if (thrown instanceof BacktalkError) return thrown;
  if (!(thrown instanceof Error)) return asBacktalkError(thrown);
  if (/^(OOM|MISCONF)\b/.test(thrown.message)) return jobErrors.valkeyFull({}, thrown);
  if (thrown.name === 'ReplyError') return jobErrors.valkeyFailed({ doing }, thrown);
  return jobErrors.valkeyUnavailable({ doing }, thrown);
}
