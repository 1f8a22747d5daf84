// What is wrong with Valkey or Redis: its version, and whether it may drop jobs to make room. In: its address. Out:
// sentences that say what to do; none is good.
import type { TlsFiles } from '../config/wire-security.js';
import { connectionOptions, valkeyError } from '../valkey/valkey.js';
import { isOlder } from '../broker/connect.js';
import type { Logger } from '../telemetry/logger.js';
import { Redis } from 'ioredis';

const askWithinMs = 3_000;

/** From INFO, which managed servers answer too, while many refuse CONFIG. */
export async function valkeyProblems(
  url: string,
  tls: TlsFiles | undefined,
  logger: Logger,
  oldest: string,
): Promise<string[]> {
  const options = connectionOptions({ url, tls, name: 'backtalk check', commandTimeoutMs: askWithinMs }, 'asker');
  const client = new Redis({ ...options, lazyConnect: true, connectTimeout: askWithinMs, retryStrategy: () => null });
  client.on('error', (error: Error) => {
    logger.debug('valkey_error', { name: 'backtalk check', reason: error.name });
  });
  let info: string;
  try {
    await client.connect();
    info = await client.info();
  } catch (error) {
    throw valkeyError(error, 'look at its settings');
  } finally {
    client.disconnect();
  }
  const field = (name: string) => new RegExp(`^${name}:(.*)$`, 'm').exec(info)?.[1]?.trim();
  const policy = field('maxmemory_policy');
  const redis = field('redis_version') ?? '0';
  const valkey = field('valkey_version');
  const isOld = isOlder(redis, oldest);
  const name = valkey === undefined ? `Redis ${redis}` : `Valkey ${valkey}`;
  return [
    ...(isOld ? [`${name} is too old, run Valkey, or Redis ${oldest} or later`] : []),
    ...(policy === undefined || policy === 'noeviction'
      ? []
      : [`${name} drops jobs when memory is short, set maxmemory-policy noeviction in place of ${policy}`]),
  ];
}
