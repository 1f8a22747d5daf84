// The keys that open this gateway, in memory, so that they are checked without asking anybody.
//
// In: the bucket `keys`, or a file. Out: the grant behind a key. What was read once stays while the broker is away or
// the file cannot be read. A loopback gateway without any key serves one caller without asking.
import { readFile, stat } from 'node:fs/promises';
import { asBacktalkError, isBacktalkError, type Clock, type KvBucket } from '@backtalk/kit';
import { gatewayErrors } from '../errors.js';
import type { GatewayEvents } from '../events.js';
import { keylessGrant, keylessId, type Grant } from '../domain/caller.js';
import { grantOf, hashOfHeader, keysFile, type KeyRecord } from '../domain/keys.js';

export interface KeySource {
  /** Resolves once the keys have been read for the first time; calls `onKeys` then and at every change. */
  start(onKeys: (keys: ReadonlyMap<string, KeyRecord>) => void): Promise<void>;
  stop(): void;
}

export interface Identity {
  readonly keyId: string;
  readonly grant: Grant;
}

const keyIdLength = 16;

export class KeyStore {
  private keys: ReadonlyMap<string, KeyRecord> = new Map();

  constructor(
    private readonly source: KeySource,
    private readonly isLoopback: boolean,
    private readonly events: GatewayEvents,
  ) {}

  async start(): Promise<void> {
    await this.source.start((keys) => {
      this.keys = keys;
      this.events.keysLoaded(keys.size);
    });
  }

  stop(): void {
    this.source.stop();
  }

  /** False where nobody could be let in. */
  get isUsable(): boolean {
    return this.isLoopback || this.keys.size > 0;
  }

  /** Throws `invalid_api_key` for a key that is wrong. */
  identify(authorization: string | undefined): Identity {
    if (this.isLoopback && this.keys.size === 0) return { keyId: keylessId, grant: keylessGrant };
    const hash = hashOfHeader(authorization);
    const grant = hash === undefined ? undefined : grantOf(this.keys, hash);
    if (hash === undefined || grant === undefined) throw gatewayErrors.wrongKey();
    return { keyId: hash.slice(0, keyIdLength), grant };
  }
}

export function keysInBucket(bucket: KvBucket<Grant>): KeySource {
  const watching = new AbortController();
  const keys = new Map<string, KeyRecord>();
  return {
    async start(onKeys) {
      let loaded = false;
      await bucket.watch(
        '>',
        (change) => {
          if (change.kind === 'put') keys.set(change.key, { hash: change.key, grant: change.value });
          // A key that merely vanished with the broker's store was not revoked.
          if (change.kind === 'deleted') keys.delete(change.key);
          if (loaded) onKeys(keys);
        },
        watching.signal,
      );
      loaded = true;
      onKeys(keys);
    },
    stop: () => watching.abort(),
  };
}

const fileLookMs = 5_000;

export function keysInFile(path: string, clock: Clock, events: GatewayEvents): KeySource {
  let cancel: () => void = () => undefined;
  let readAtMs = 0;
  const look = async (onKeys: (keys: ReadonlyMap<string, KeyRecord>) => void): Promise<void> => {
    const mtimeMs = await changedAtMs(path);
    if (mtimeMs === undefined || mtimeMs === readAtMs) return;
    onKeys(parseKeys(await readFile(path, 'utf8')));
    readAtMs = mtimeMs;
  };
  const again = (onKeys: (keys: ReadonlyMap<string, KeyRecord>) => void): void => {
    cancel = clock.timer(fileLookMs, () => {
      look(onKeys)
        .catch((error: unknown) => events.keysFailed(asBacktalkError(error)))
        .finally(() => again(onKeys));
    });
  };
  return {
    async start(onKeys) {
      await look(onKeys).catch((cause: unknown) => {
        const error = asBacktalkError(cause);
        throw isBacktalkError(error, 'keys_file_invalid')
          ? error
          : gatewayErrors.keysFileInvalid({ why: 'it cannot be read' }, cause);
      });
      again(onKeys);
    },
    stop: () => cancel(),
  };
}

/** Undefined for a file that is not there: no key has been made yet. */
async function changedAtMs(path: string): Promise<number | undefined> {
  try {
    return (await stat(path)).mtimeMs;
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return undefined;
    throw error;
  }
}

function parseKeys(text: string): ReadonlyMap<string, KeyRecord> {
  const parsed = keysFile.safeParse(jsonOf(text));
  if (!parsed.success) {
    const place = parsed.error.issues[0]?.path.join('.') ?? '';
    throw gatewayErrors.keysFileInvalid({ why: `it is not as it should be at "${place}"` });
  }
  return new Map(parsed.data.keys.map(({ sha256, ...grant }) => [sha256, { hash: sha256, grant }]));
}

function jsonOf(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (cause) {
    throw gatewayErrors.keysFileInvalid({ why: 'it is no JSON' }, cause);
  }
}
