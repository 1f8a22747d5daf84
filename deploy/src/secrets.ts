// Passwords of the broker's users and the key of all keyed hashes, made once for a data folder and kept there (mode 600).
import { randomBytes } from 'node:crypto';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { brokerUsers, type BrokerUser } from '@backtalk/kit';
import { z } from 'zod';

const password = z.string().min(16);
const schema = z.object({
  hashSecret: z.string().min(32),
  /** What services bring when they call each other; folders of earlier versions have none. */
  serviceToken: password.optional(),
  passwords: z.object({
    admin: password,
    gateway: password,
    collector: password,
    judge: password,
    trainer: password,
    publisher: password,
    loader: password,
    cli: password,
  } satisfies Record<BrokerUser, typeof password>),
});
export type Secrets = z.infer<typeof schema> & { readonly serviceToken: string };

export function loadSecrets(dataFolder: string): Secrets {
  const file = join(dataFolder, 'secrets.json');
  const made = () => randomBytes(24).toString('base64url');
  const kept = existsSync(file) ? schema.parse(JSON.parse(readFileSync(file, 'utf8'))) : undefined;
  if (kept?.serviceToken !== undefined) return { ...kept, serviceToken: kept.serviceToken };
  const fresh = kept ?? {
    hashSecret: randomBytes(32).toString('hex'),
    passwords: Object.fromEntries(brokerUsers.map((user) => [user, made()])) as Record<BrokerUser, string>,
  };
  const secrets = { ...fresh, serviceToken: made() };
  writeFileSync(file, `${JSON.stringify(secrets, null, 2)}\n`, { mode: 0o600 });
  return secrets;
}
