// Connections to Valkey. In: a URL and a role. Out: a client that reconnects within two seconds of Valkey's return and
// notices within twelve seconds that Valkey has stopped without closing. An asker's commands fail fast while Valkey
// cannot be reached; a waiter's commands wait until it can.
import { Redis } from 'ioredis';
import type { TlsFiles } from '../config/wire-security.js';
import { asBacktalkError, BacktalkError, defineErrors } from '../errors/backtalk-error.js';
import type { Logger } from '../telemetry/logger.js';

export type ValkeyRole = 'asker' | 'waiter';

export interface ValkeyOptions {
  readonly url: string;
  /** Shown in Valkey's own client list. */
  readonly name: string;
  readonly logger: Logger;
  /** For addresses that begin with rediss://; without them, whom the system trusts. */
  readonly tls?: TlsFiles | undefined;
  /** How long one command of an asker may take. */
  readonly commandTimeoutMs?: number;
  /** How often an asker's command is sent again over a new connection. */
  readonly maxRetriesPerRequest?: number;
  /** Sends commands of one tick together. */
  readonly enableAutoPipelining?: boolean;
  /** Connects with `connect()`, not by itself. */
  readonly lazyConnect?: boolean;
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
  enableAutoPipelining: boolean;
  lazyConnect: boolean;
  commandTimeout?: number;
  username?: string;
  password?: string;
  tls?: object;
}

const reconnectMostMs = 2_000;

export function connectionOptions(
  {
    url,
    name,
    commandTimeoutMs = 2_000,
    maxRetriesPerRequest = 1,
    enableAutoPipelining = false,
    lazyConnect = false,
    tls,
  }: Omit<ValkeyOptions, 'logger'>,
  role: ValkeyRole,
): ValkeyConnection {
  const { hostname, port, username, password, protocol, pathname } = new URL(url);
  const shared = {
    // An address of IPv6 stands in brackets there.
    host: hostname.replace(/^\[(.*)\]$/, '$1'),
    port: Number(port === '' ? 6379 : port),
    db: Number(pathname.slice(1) || 0),
    connectionName: name,
    connectTimeout: 5_000,
    keepAlive: 5_000,
    // A peer that has stopped without closing is noticed: workers ask at least every five seconds.
    socketTimeout: 12_000,
    retryStrategy: (times: number) => Math.min(times * 100, reconnectMostMs),
    enableAutoPipelining,
    lazyConnect,
    ...(username === '' ? {} : { username: decodeURIComponent(username) }),
    ...(password === '' ? {} : { password: decodeURIComponent(password) }),
    ...(protocol === 'rediss:' ? { tls: tls ?? {} } : {}),
  };
  if (role === 'waiter') return { ...shared, enableOfflineQueue: true, maxRetriesPerRequest: null };
  return { ...shared, enableOfflineQueue: false, maxRetriesPerRequest, commandTimeout: commandTimeoutMs };
}

/** A client for a service's own working memory; it connects in the background. */
export function connectValkey(options: ValkeyOptions, role: ValkeyRole = 'asker'): Redis {
  const client = new Redis(connectionOptions(options, role));
  logValkeyErrors(client, options);
  return client;
}

/** One line for each loss of the connection, not one for each attempt to mend it. */
export function logValkeyErrors(
  source: { on(event: 'error', fn: (error: Error) => void): unknown; on(event: 'ready', fn: () => void): unknown },
  { name, logger }: Pick<ValkeyOptions, 'name' | 'logger'>,
): void {
  let last = '';
  source.on('ready', () => {
    last = '';
  });
  source.on('error', (error) => {
    const reason = 'code' in error && typeof error.code === 'string' ? error.code : error.name;
    if (reason === last) return;
    last = reason;
    logger.warn('valkey_error', { name, reason });
  });
}

export function valkeyError(thrown: unknown, doing: string): BacktalkError {
  if (thrown instanceof BacktalkError) return thrown;
  if (!(thrown instanceof Error)) return asBacktalkError(thrown);
  if (/^(OOM|MISCONF)\b/.test(thrown.message)) return valkeyErrors.valkeyFull({}, thrown);
  if (thrown.name === 'ReplyError') return valkeyErrors.valkeyFailed({ doing }, thrown);
  return valkeyErrors.valkeyUnavailable({ doing }, thrown);
}

export const valkeyErrors = defineErrors('valkey', {
  valkeyUnavailable: {
    code: 'valkey_unavailable',
    status: 503,
    retry: 'later',
    message: (p: { doing: string }) => `Valkey did not answer in time (${p.doing}).`,
  },
  valkeyFull: {
    code: 'valkey_full',
    status: 503,
    retry: 'later',
    message: () => 'Valkey has no room left: nothing more is stored until space is freed.',
  },
  valkeyFailed: {
    code: 'valkey_failed',
    retry: 'later',
    message: (p: { doing: string }) => `Valkey refused a command (${p.doing}).`,
  },
});
