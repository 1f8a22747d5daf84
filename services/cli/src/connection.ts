// Where the running machine is: its folder says it (connection.json, written by the start command).

import { existsSync, readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { connectBroker, createLogger, folderBlobStore, type BlobStore, type Broker } from '@backtalk/kit';
import { z } from 'zod';
import { CliErrors } from './errors.js';

const schema = z.object({
  endpoint: z.url(),
  engine: z.url(),
  policy: z.string(),
  baseModel: z.string(),
  natsUrl: z.string(),
  natsUser: z.string(),
  natsPassword: z.string(),
  valkeyUrl: z.string(),
  blobDir: z.string(),
  health: z.record(z.string(), z.url()),
});
export type Connection = z.infer<typeof schema>;

export function readConnection(dataFolder: string): Connection {
  const file = join(resolve(dataFolder), 'connection.json');
  if (!existsSync(file)) throw CliErrors.notRunning({ where: `${file} is not there` });
  return schema.parse(JSON.parse(readFileSync(file, 'utf8')));
}

/** Runs `use` with a connection to the broker, and closes it. */
export async function withBroker<T>(
  connection: Connection,
  use: (broker: Broker, blobs: BlobStore) => Promise<T>,
): Promise<T> {
  const broker = await connectBroker({
    url: connection.natsUrl,
    user: connection.natsUser,
    password: connection.natsPassword,
    name: 'backtalk command',
    logger: createLogger({ service: 'cli', level: 'silent' }),
    connectTimeoutMs: 3_000,
  }).catch((error: unknown) => {
    throw CliErrors.unreachable({ what: 'The broker', url: connection.natsUrl }, error);
  });
  try {
    return await use(broker, folderBlobStore(connection.blobDir));
  } finally {
    await broker.close();
  }
}
