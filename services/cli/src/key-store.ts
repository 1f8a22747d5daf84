// Where keys are kept, by their SHA-256: in the broker's bucket, or in a machine's file, as the gateway there reads them.
import { closeSync, existsSync, openSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { jsonCodec, keyGrant, kvBucket, systemClock, type Broker, type KeyGrant } from '@backtalk/kit';
import { z } from 'zod';
import { withBrokerAlone, type Connection } from './connection.js';
import { cliErrors } from './errors.js';

export interface KeyStore {
  put(hash: string, grant: KeyGrant): Promise<void>;
  list(): Promise<{ hash: string; grant: KeyGrant }[]>;
  remove(hash: string): Promise<void>;
}

export const keysIn = (data: string) => join(data, 'keys.json');

/** Why the gateway cannot read a machine's file of keys, or should not; empty where nothing is wrong with it. */
export function problemOfKeys(file: string): string {
  const mode = statSync(file, { throwIfNoEntry: false })?.mode;
  if (mode === undefined) return '';
  try {
    keysAt(file);
  } catch {
    return 'cannot be read as keys';
  }
  return (mode & 0o077) === 0 ? '' : 'can be read by other users of this machine';
}

/** A machine has a folder, a cluster has none. */
export async function withKeyStore<T>(connection: Connection, use: (store: KeyStore) => Promise<T>): Promise<T> {
  if (connection.data !== undefined) return use(fileStore(keysIn(connection.data)));
  const { keysSecret: secret } = connection;
  if (secret !== '') throw cliErrors.keysInSecret({ secret });
  return withBrokerAlone(connection, (broker) => use(bucketStore(broker)));
}

function bucketStore(broker: Broker): KeyStore {
  const bucket = kvBucket(broker, 'keys', jsonCodec(keyGrant));
  return {
    put: async (hash, grant) => {
      await bucket.put(hash, grant);
    },
    list: async () => {
      const found: { hash: string; grant: KeyGrant }[] = [];
      for await (const { key, value } of bucket.entries()) found.push({ hash: key, grant: value });
      return found;
    },
    remove: (hash) => bucket.delete(hash),
  };
}

const keysFile = z.object({ keys: z.array(keyGrant.extend({ sha256: z.string() })) });
type KeysFile = z.infer<typeof keysFile>;

function keysAt(file: string): KeysFile {
  if (!existsSync(file)) return { keys: [] };
  const text = readFileSync(file, 'utf8');
  try {
    return keysFile.parse(JSON.parse(text));
  } catch {
    throw cliErrors.keysDamaged({ file });
  }
}

function fileStore(path: string): KeyStore {
  const without = (keys: KeysFile['keys'], hash: string) => keys.filter(({ sha256 }) => sha256 !== hash);
  return {
    put: (hash, grant) => change(path, (keys) => [...without(keys, hash), { sha256: hash, ...grant }]),
    list: () => Promise.resolve(keysAt(path).keys.map(({ sha256: hash, ...grant }) => ({ hash, grant }))),
    remove: (hash) => change(path, (keys) => without(keys, hash)),
  };
}

/** Another command needs a few milliseconds. */
const waitsMax = 100;
const waitMs = 20;

/** One command at a time writes beside the file, from before it reads. The gateway may read at any moment: it finds the old file or the new one. */
async function change(path: string, changed: (keys: KeysFile['keys']) => KeysFile['keys']): Promise<void> {
  const beside = `${path}.new`;
  const file = await openedAlone(beside);
  try {
    writeFileSync(file, `${JSON.stringify({ keys: changed(keysAt(path).keys) }, null, 2)}\n`);
    renameSync(beside, path);
  } catch (error) {
    rmSync(beside);
    throw error;
  } finally {
    closeSync(file);
  }
}

async function openedAlone(beside: string): Promise<number> {
  for (let waits = 0; waits < waitsMax; waits += 1) {
    try {
      return openSync(beside, 'wx', 0o600);
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
    }
    await systemClock.sleep(waitMs);
  }
  throw cliErrors.keysBusy({ file: beside });
}
