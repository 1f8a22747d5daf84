// Passwords of the broker's users, the key of all keyed hashes, and what the parts show to each other: made once for a data
// folder and kept there (mode 600). A folder of an earlier release gets what it lacks.
import { randomBytes } from 'node:crypto';
import { chmodSync, existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { brokerUsers, callPairs, type BrokerUser, type CallPair } from '@backtalk/kit';
import { z } from 'zod';

const password = z.string().min(16);
const schema = z.object({
  hashSecret: z.string().min(32),
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
  /** What callers of the built-in engine give. */
  engineKey: password,
  /** What the judge gives it, which loads no adapter. */
  judgeEngineKey: password,
  /** What the parts give each other in gRPC calls: a secret for each pair. */
  callTokens: z.object({
    publisherToGateway: password,
    publisherToLoader: password,
    cliToPublisher: password,
    trainerToTraining: password,
  } satisfies Record<CallPair, typeof password>),
});
export type Secrets = z.infer<typeof schema>;

/** A file that lacks what every release had is damaged, and no reason to make another secret of all hashes. */
const known = schema.partial({ engineKey: true, judgeEngineKey: true, callTokens: true });
const newPassword = () => randomBytes(24).toString('base64url');

export function loadSecrets(dataFolder: string): Secrets {
  const file = join(dataFolder, 'secrets.json');
  const made = {
    hashSecret: randomBytes(32).toString('hex'),
    passwords: Object.fromEntries(brokerUsers.map((user) => [user, newPassword()])),
    engineKey: newPassword(),
    judgeEngineKey: newPassword(),
    callTokens: Object.fromEntries(callPairs.map((pair) => [pair, newPassword()])),
  };
  const kept = existsSync(file) ? known.parse(JSON.parse(readFileSync(file, 'utf8'))) : {};
  const secrets = schema.parse(Object.assign(made, kept));
  writeFileSync(file, `${JSON.stringify(secrets, null, 2)}\n`, { mode: 0o600 });
  chmodSync(file, 0o600);
  return secrets;
}
