// Passwords of the broker's users and of Valkey, the key of all keyed hashes, and what the parts show to each other: made once
// for a data folder and kept there (mode 600). A folder of an earlier release gets what it lacks. Who starts processes with them
// holds the folder's lock and has ended what an earlier start left: nothing that runs has another.
import { randomBytes } from 'node:crypto';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { brokerUsers, callPairs, type BrokerUser, type CallPair } from '@backtalk/kit';
import { z } from 'zod';
import { writePrivate } from './data-folder.js';

const password = z.string().min(16);
const passwords = z.object({
  admin: password,
  gateway: password,
  collector: password,
  judge: password,
  trainer: password,
  publisher: password,
  loader: password,
  cli: password,
} satisfies Record<BrokerUser, typeof password>);
/** What the parts give each other in gRPC calls: a secret for each pair. */
const callTokens = z.object({
  publisherToGateway: password,
  publisherToLoader: password,
  cliToPublisher: password,
  trainerToTraining: password,
} satisfies Record<CallPair, typeof password>);
const schema = z.object({
  hashSecret: z.string().min(32),
  passwords,
  valkeyPassword: password,
  /** First part of the paths at the broker's monitor, which knows no users. */
  natsMonitor: password,
  /** What callers of the built-in engine give. */
  engineKey: password,
  /** What the judge gives it, which loads no adapter. */
  judgeEngineKey: password,
  callTokens,
});
export type Secrets = z.infer<typeof schema>;

const hidden = '***';
/** In the place of secrets where a start is only talked about. */
export const hiddenSecrets: Secrets = {
  hashSecret: hidden,
  valkeyPassword: hidden,
  natsMonitor: hidden,
  engineKey: hidden,
  judgeEngineKey: hidden,
  passwords: Object.fromEntries(brokerUsers.map((user) => [user, hidden])) as Secrets['passwords'],
  callTokens: Object.fromEntries(callPairs.map((pair) => [pair, hidden])) as Secrets['callTokens'],
};

/** Of an environment that is shown: what it inherits may hold secrets of others. */
export const withoutSecrets = (environment: Readonly<Record<string, string>>): Readonly<Record<string, string>> =>
  Object.fromEntries(
    Object.entries(environment).map(([name, value]) => [
      name,
      /(?:KEY|TOKEN|SECRET|PASSWORD)$/.test(name) && value !== '' ? hidden : value,
    ]),
  );

/**
 * Any may be missing but the one that stands behind what is stored: a file without it is damaged, and no reason to make another
 * secret of all hashes.
 */
const kept = schema
  .extend({ passwords: passwords.partial(), callTokens: callTokens.partial() })
  .partial()
  .required({ hashSecret: true });

const newPassword = () => randomBytes(24).toString('base64url');
const passwordsOf = (names: readonly string[]) => Object.fromEntries(names.map((name) => [name, newPassword()]));

export function loadSecrets(dataFolder: string): Secrets {
  const file = join(dataFolder, 'secrets.json');
  const text = existsSync(file) ? readFileSync(file, 'utf8') : undefined;
  const found: Partial<z.infer<typeof kept>> = text === undefined ? {} : kept.parse(JSON.parse(text));
  const secrets = schema.parse({
    hashSecret: randomBytes(32).toString('hex'),
    valkeyPassword: newPassword(),
    natsMonitor: newPassword(),
    engineKey: newPassword(),
    judgeEngineKey: newPassword(),
    ...found,
    passwords: { ...passwordsOf(brokerUsers), ...found.passwords },
    callTokens: { ...passwordsOf(callPairs), ...found.callTokens },
  });
  writePrivate(file, `${JSON.stringify(secrets, null, 2)}\n`);
  return secrets;
}
