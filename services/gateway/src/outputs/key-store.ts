// The keys that this gateway accepts, in memory, so that they are checked without a call.
//
// In: the bucket `keys`, or a file. Out: the grant behind a key. What was read once stays while the broker is down or
// the file cannot be read. A loopback gateway that never had a key serves one caller without asking; a file without
// keys, the mark that a deleted key leaves in the bucket, or a file of our own on this disk that outlives both, says that there
// was one, and it stays closed.
import { access, mkdir, readFile, stat, writeFile } from 'node:fs/promises';
import { dirname } from 'node:path';
import { asBacktalkError, isBacktalkError, type Clock, type KvBucket } from '@backtalk/kit';
import { gatewayErrors } from '../errors.js';
import type { GatewayEvents } from '../events.js';
import { keylessGrant, keylessId, type Grant } from '../domain/caller.js';
import { grantOf, hashOfHeader, keysFile, withPolicies, type KeyRecord } from '../domain/keys.js';

type OnKeys = (keys: ReadonlyMap<string, KeyRecord>) => void;

interface KeySource {
  /** Resolves once the keys have been looked for; calls `onKeys` then and at every change, but not where there never was a key. */
  start(onKeys: OnKeys): Promise<void>;
  stop(): void;
}

interface Identity {
  readonly keyId: string;
  readonly grant: Grant;
}

const keyIdLength = 16;
const markText =
  'There were keys. While this file is there, the gateway asks for one; remove it to open the gateway to all of this machine.\n';

export class KeyStore {
  private keys: ReadonlyMap<string, KeyRecord> = new Map();
  private hadKeys = false;

  constructor(
    private readonly source: KeySource,
    private readonly isLoopback: boolean,
    /** Made when a key is first seen: while it is there, the gateway is not keyless. */
    private readonly markFile: string,
    /** Where releases before had theirs. */
    private readonly formerMarkFile: string | undefined,
    private readonly events: GatewayEvents,
  ) {}

  async start(): Promise<void> {
    const isMarked = await isThere(this.markFile);
    this.hadKeys = isMarked || (this.formerMarkFile !== undefined && (await isThere(this.formerMarkFile)));
    const closedBefore = this.hadKeys;
    let marking = this.hadKeys && !isMarked ? this.mark() : undefined;
    await this.source.start((keys) => {
      this.hadKeys = true;
      if (!isMarked) marking ??= this.mark();
      this.keys = withPolicies(keys);
      this.events.keysLoaded(keys.size);
    });
    await marking;
    if (closedBefore && this.isLoopback && this.keys.size === 0) this.events.keysGone(this.markFile);
  }

  stop(): void {
    this.source.stop();
  }

  /** Where only keys are taken anyway, a disk that cannot be written is no harm. */
  private async mark(): Promise<void> {
    if (!this.isLoopback) return;
    try {
      await mkdir(dirname(this.markFile), { recursive: true });
      await writeFile(this.markFile, markText, { mode: 0o600 });
    } catch (error) {
      this.events.keysFailed(asBacktalkError(error));
    }
  }

  /** True where requests are answered without a key. */
  get isKeyless(): boolean {
    return this.isLoopback && !this.hadKeys;
  }

  /** False where every request would be refused. */
  get isUsable(): boolean {
    return this.isKeyless || this.keys.size > 0;
  }

  /** Throws `invalid_api_key` for a key that is wrong. */
  identify(authorization: string | undefined): Identity {
    if (this.isKeyless) return { keyId: keylessId, grant: keylessGrant };
    const hash = hashOfHeader(authorization);
    const grant = hash === undefined ? undefined : grantOf(this.keys, hash);
    if (hash === undefined || grant === undefined) throw gatewayErrors.wrongKey();
    return { keyId: hash.slice(0, keyIdLength), grant };
  }
}

function isThere(path: string): Promise<boolean> {
  return access(path).then(
    () => true,
    () => false,
  );
}

export function keysInBucket(bucket: KvBucket<Grant>): KeySource {
  const watching = new AbortController();
  const keys = new Map<string, KeyRecord>();
  return {
    async start(onKeys) {
      let loaded = false;
      let hadKeys = false;
      await bucket.watch(
        '>',
        (change) => {
          hadKeys = true;
          if (change.kind === 'put') keys.set(change.key, { hash: change.key, grant: change.value });
          // A key that merely vanished with the broker's store was not revoked.
          if (change.kind === 'deleted') keys.delete(change.key);
          if (loaded) onKeys(keys);
        },
        watching.signal,
      );
      loaded = true;
      if (hadKeys) onKeys(keys);
    },
    stop: () => watching.abort(),
  };
}

const fileLookMs = 5_000;

export function keysInFile(path: string, clock: Clock, events: GatewayEvents): KeySource {
  let cancel: () => void = () => undefined;
  let readAtMs = 0;
  const look = async (onKeys: OnKeys): Promise<void> => {
    const found = await stat(path).catch((error: unknown) => {
      // A file that is not there: no key has been made yet.
      if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return undefined;
      throw error;
    });
    if (found === undefined || found.mtimeMs === readAtMs) return;
    onKeys(parseKeys(await readFile(path, 'utf8')));
    readAtMs = found.mtimeMs;
  };
  const lookLater = (onKeys: OnKeys): void => {
    cancel = clock.timer(fileLookMs, () => {
      look(onKeys)
        .catch((error: unknown) => events.keysFailed(asBacktalkError(error)))
        .finally(() => lookLater(onKeys));
    });
  };
  return {
    async start(onKeys) {
      await look(onKeys).catch((error: unknown) => {
        if (isBacktalkError(error, 'keys_file_invalid')) throw error;
        throw gatewayErrors.keysFileInvalid({ why: 'it cannot be read' }, error);
      });
      lookLater(onKeys);
    },
    stop: () => cancel(),
  };
}

function parseKeys(text: string): ReadonlyMap<string, KeyRecord> {
  let json: unknown;
  try {
    json = JSON.parse(text);
  } catch (cause) {
    throw gatewayErrors.keysFileInvalid({ why: 'it is no JSON' }, cause);
  }
  const { success, data, error } = keysFile.safeParse(json);
  if (success) return new Map(data.keys.map(({ sha256, ...grant }) => [sha256, { hash: sha256, grant }]));
  const path = error.issues[0]?.path.join('.') ?? '';
  throw gatewayErrors.keysFileInvalid({ why: `it is not as it should be at "${path}"` });
}
