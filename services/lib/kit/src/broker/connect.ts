// One connection of one service to the broker. In: where and who. Out: a Broker that reconnects without end and says
// whether it is up. It creates no streams and sends nothing by itself but pings.
import {
  connect,
  ErrorCode,
  Events,
  NatsError,
  type JetStreamClient,
  type JetStreamManager,
  type Msg,
  type NatsConnection,
} from 'nats';
import type { TlsFiles } from '../config/wire-security.js';
import { asBacktalkError, kitErrors } from '../errors/backtalk-error.js';
import { type Logger, Said } from '../telemetry/logger.js';
import { type Clock, systemClock } from '../time/clock.js';
import { inboxPrefixOf } from '../topology/users.js';
import { brokerErrors } from './errors.js';
import { mendTransport } from './mended-transport.js';
import { type BrokerRequest, Requests } from './requests.js';

export type BrokerStatus = 'up' | 'down';

export interface Broker {
  readonly nc: NatsConnection;
  readonly js: JetStreamClient;
  readonly jsm: JetStreamManager;
  /** The broker's user, which is the service's name. */
  readonly user: string;
  readonly logger: Logger;
  /** One request: its reply or an error, within its deadline. */
  ask(request: BrokerRequest): Promise<Msg>;
  status(): BrokerStatus;
  /** Calls `fn` at every change; the returned function ends that. */
  onStatus(fn: (status: BrokerStatus) => void): () => void;
  close(): Promise<void>;
}

export interface BrokerOptions {
  /** One address, or several with commas between. */
  readonly url: string;
  readonly user: string;
  readonly password: string;
  /** For addresses that begin with tls:// */
  readonly tls?: TlsFiles;
  /** Shown in the broker's own connection list. */
  readonly name: string;
  readonly logger: Logger;
  /** How long the first connection may take before the start fails. Infinity: as long as it takes. */
  readonly connectTimeoutMs?: number;
  /** Gives up the first connection. */
  readonly signal?: AbortSignal;
  readonly clock?: Clock;
}

/** Every check of the broker's version takes this figure. */
export const oldestServer = '2.12.0';
/** A peer that has stopped without closing is noticed after three of them. */
const pingIntervalMs = 4_000;
const requestTimeoutMs = 5_000;
const reconnectWaitMs = 250;
const reconnectJitterMs = 100;

export async function connectBroker(options: BrokerOptions): Promise<Broker> {
  mendTransport();
  const nc = await firstConnection(options);
  const version = nc.info?.version ?? '0';
  if (isOlder(version, oldestServer)) {
    await nc.close();
    throw brokerErrors.brokerTooOld({ version, oldest: oldestServer });
  }
  const listeners = new Set<(status: BrokerStatus) => void>();
  let current: BrokerStatus = 'up';
  const change = (status: BrokerStatus) => {
    if (status === current) return;
    current = status;
    options.logger[status === 'up' ? 'info' : 'warn'](`broker_${status}`, { user: options.user });
    if (status === 'down') requests.disconnected();
    for (const listener of listeners) listener(status);
  };
  const requests = new Requests(nc, options.user, options.clock ?? systemClock, options.logger);
  follow(nc, change, requests, options.logger);
  return {
    nc,
    js: nc.jetstream({ timeout: requestTimeoutMs }),
    jsm: await nc.jetstreamManager({ checkAPI: false, timeout: requestTimeoutMs }),
    user: options.user,
    logger: options.logger,
    ask: (request) => requests.ask(request),
    status: () => current,
    onStatus: (fn) => {
      listeners.add(fn);
      return () => listeners.delete(fn);
    },
    close: async () => {
      if (!nc.isClosed()) await nc.close();
    },
  };
}

/** Tries again until the time is up, because the broker and its services often start together. */
async function firstConnection(options: BrokerOptions): Promise<NatsConnection> {
  const { clock = systemClock, connectTimeoutMs: waitMs = 30_000, signal, user, logger } = options;
  const deadline = clock.now() + waitMs;
  const said = new Said(clock);
  for (;;) {
    try {
      return await connectUnlessStopped(options);
    } catch (error) {
      signal?.throwIfAborted();
      if (error instanceof NatsError && error.isAuthError()) throw brokerErrors.brokerRefused({ user }, error);
      if (clock.now() >= deadline) throw brokerErrors.brokerUnavailable({ doing: 'connect' }, error);
      // A start that waits in silence looks like one that hangs.
      if (said.isDue('broker')) {
        const reason = error instanceof NatsError ? error.code : asBacktalkError(error).code;
        logger.warn('broker_awaited', { user, reason, ...(Number.isFinite(waitMs) ? { waitMs } : {}) });
      }
    }
    await clock.sleep(250, signal);
  }
}

/** A try that is on its way when the signal comes is not waited for. */
async function connectUnlessStopped(options: BrokerOptions): Promise<NatsConnection> {
  const { signal } = options;
  signal?.throwIfAborted();
  const connecting = connectOnce(options);
  if (signal === undefined) return connecting;
  return new Promise((resolve, reject) => {
    const stop = (): void => {
      reject(kitErrors.cancelled());
      connecting.then((nc) => nc.close()).catch(() => undefined);
    };
    signal.addEventListener('abort', stop, { once: true });
    connecting.then(resolve, reject).finally(() => {
      signal.removeEventListener('abort', stop);
    });
  });
}

async function connectOnce({ url, user, password, name, tls }: BrokerOptions): Promise<NatsConnection> {
  let nc: NatsConnection | undefined = undefined;
  nc = await connect({
    servers: url.split(','),
    user,
    pass: password,
    name,
    inboxPrefix: inboxPrefixOf(user),
    ...(url.includes('tls://') ? { tls: tlsOptions(tls) } : {}),
    timeout: 2_000,
    maxReconnectAttempts: -1,
    // Asked before every try. The library waits until a moment after its last try: after a clock was set back, that may be
    // in hours, so tries in the future are forgotten.
    reconnectDelayHandler: () => {
      const { protocol } = (nc ?? {}) as { readonly protocol?: { readonly servers: { getServers(): Tried[] } } };
      for (const server of protocol?.servers.getServers() ?? [])
        if (server.lastConnect > Date.now()) server.lastConnect = 0;
      return reconnectWaitMs + Math.random() * reconnectJitterMs;
    },
    ignoreAuthErrorAbort: true,
    // A stack trace made for every request costs more than the request.
    noAsyncTraces: true,
    pingInterval: pingIntervalMs,
    maxPingOut: 2,
  });
  return nc;
}

/** Without files: whom the system trusts. */
function tlsOptions(files: TlsFiles | undefined) {
  if (files === undefined) return {};
  return { ca: files.ca.toString(), cert: files.cert.toString(), key: files.key.toString() };
}

interface Tried {
  lastConnect: number;
}

function follow(nc: NatsConnection, change: (status: BrokerStatus) => void, requests: Requests, logger: Logger): void {
  const read = async () => {
    for await (const event of nc.status()) {
      if (event.type === Events.Disconnect) change('down');
      else if (event.type === Events.Reconnect) change('up');
      else if (event.type === Events.Error && event.data === ErrorCode.PermissionsViolation) {
        const { operation = '', subject = '' } = event.permissionContext ?? {};
        logger.warn('broker_forbidden', { operation, subject });
        if (operation === 'publish') requests.forbidden(subject);
      }
    }
  };
  nc.closed()
    .then(() => {
      change('down');
    })
    .catch((error: unknown) => {
      logger.error('broker_closed_badly', { error });
    });
  read().catch((error: unknown) => {
    logger.error('broker_status_lost', { error });
    change('down');
  });
}

export function isOlder(version: string, oldest: string): boolean {
  const [left, right] = [version, oldest].map((text) =>
    text.split(/[.-]/).map((part) => Number.parseInt(part, 10) || 0),
  );
  for (let i = 0; i < 3; i += 1) {
    const difference = (left?.[i] ?? 0) - (right?.[i] ?? 0);
    if (difference !== 0) return difference < 0;
  }
  return false;
}
