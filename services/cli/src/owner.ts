// How the log names tenants and users: by keyed hashes. In: names. Out: hashes, by the secret of the folder or of the environment.
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { readConfig, tenantHash, userHash } from '@backtalk/kit';
import { z } from 'zod';
import { hashSettings } from './config.js';
import type { Connection } from './connection.js';
import { cliErrors } from './errors.js';
import { withKeyStore } from './key-store.js';

export const usualTenant = 'default';
/** The one person of a machine without keys. */
export const keylessUser = 'local';
const secretsSchema = z.object({ hashSecret: z.string() });

export function hashedTenant(connection: Connection, tenant = usualTenant): string {
  return tenantHash(hashSecretOf(connection), tenant);
}

export function hashedUser(connection: Connection, user: string, tenant = usualTenant): string {
  return userHash(hashSecretOf(connection), tenant, user);
}

export async function asksForNoKey(connection: Connection): Promise<boolean> {
  return connection.data !== undefined && (await withKeyStore(connection, (store) => store.list())).length === 0;
}

/** Whose word a command is: on a machine without keys the one person's, who may want otherwise later; elsewhere an operator's, empty. */
export async function giverHere(connection: Connection): Promise<string> {
  return (await asksForNoKey(connection)) ? hashedUser(connection, keylessUser) : '';
}

function hashSecretOf({ data }: Connection): string {
  const file = join(data ?? '', 'secrets.json');
  const secret =
    data !== undefined && existsSync(file)
      ? secretsSchema.parse(JSON.parse(readFileSync(file, 'utf8'))).hashSecret
      : readConfig(hashSettings).hashSecret;
  if (secret === undefined) throw cliErrors.hashSecretNeeded();
  return secret;
}
