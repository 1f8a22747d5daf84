// What a person who is forgotten is given: what was deleted and made again, and what is out of reach, signed by the installation (Ed25519).
import {
  createHash,
  createPrivateKey,
  createPublicKey,
  generateKeyPairSync,
  sign,
  verify,
  type KeyObject,
} from 'node:crypto';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { z } from 'zod';
import type { Connection } from './connection.js';
import { cliErrors } from './errors.js';

const policySchema = z.strictObject({
  policy: z.string(),
  /** Lessons of theirs that were in the ledger. */
  lessons: z.number(),
  /** Versions that learned from them, newest first: their files are deleted. */
  learned: z.array(z.string()),
  /** The version that answers now, which is none of those. */
  answers: z.string(),
  facts: z.number(),
  files: z.number(),
  /** Of those versions, the ones whose other steps were not taken once more; receipts of before do not say it. */
  lost: z.array(z.string()).optional(),
});
export type PolicyReceipt = z.infer<typeof policySchema>;

const receiptSchema = z.strictObject({
  forgotten: z.strictObject({ tenant: z.string(), user: z.string() }),
  at: z.string(),
  turns: z.number(),
  facts: z.number(),
  payloads: z.number(),
  deadLetters: z.number(),
  policies: z.array(policySchema),
  stays: z.array(z.string()),
});
export type Receipt = z.infer<typeof receiptSchema>;

const signedSchema = z.strictObject({ receipt: receiptSchema, publicKey: z.string(), signature: z.string() });
export type SignedReceipt = z.infer<typeof signedSchema>;

/** A machine has a key of its own, made when it is first needed; a cluster's operator names one. */
export function signingKey({ data }: Pick<Connection, 'data'>, file: string | undefined): KeyObject {
  const path = file ?? (data === undefined ? undefined : join(data, 'receipt-key.pem'));
  if (path === undefined) throw cliErrors.signingKeyNeeded();
  if (file === undefined && !existsSync(path)) {
    const { privateKey } = generateKeyPairSync('ed25519');
    writeFileSync(path, privateKey.export({ type: 'pkcs8', format: 'pem' }), { mode: 0o600, flag: 'wx' });
  }
  const key = readKey(path);
  if (key?.asymmetricKeyType !== 'ed25519')
    throw cliErrors.badArgument({
      name: '--key',
      value: path,
      wanted: 'an Ed25519 key in PEM (openssl genpkey -algorithm ed25519)',
    });
  return key;
}

function readKey(path: string): KeyObject | undefined {
  try {
    return createPrivateKey(readFileSync(path, 'utf8'));
  } catch {
    return undefined;
  }
}

const publicPart = (key: KeyObject): string =>
  createPublicKey(key).export({ type: 'spki', format: 'der' }).toString('base64');

/** As people compare keys: the first 16 hexadecimal digits of its SHA-256. */
export function fingerprint(publicKey: string): string {
  return createHash('sha256').update(Buffer.from(publicKey, 'base64')).digest('hex').slice(0, 16);
}

export function signed(receipt: Receipt, key: KeyObject): SignedReceipt {
  const signature = sign(null, bytesOf(receipt), key).toString('base64');
  return { receipt, publicKey: publicPart(key), signature };
}

/** Undefined where it is no receipt. */
export function readReceipt(text: string): SignedReceipt | undefined {
  try {
    return signedSchema.parse(JSON.parse(text));
  } catch {
    return undefined;
  }
}

/** Whether nothing of it was changed since it was signed with the key that it names. */
export function isGenuine({ receipt, publicKey, signature }: SignedReceipt): boolean {
  try {
    const key = createPublicKey({ key: Buffer.from(publicKey, 'base64'), type: 'spki', format: 'der' });
    return verify(null, bytesOf(receipt), key, Buffer.from(signature, 'base64'));
  } catch {
    return false;
  }
}

export function counted(count: number, what: string): string {
  return `${String(count)} ${what}${count === 1 ? '' : 's'}`;
}

/** In words. */
export function receiptLines({
  forgotten,
  at,
  turns,
  facts,
  payloads,
  deadLetters,
  policies,
  stays,
}: Receipt): string[] {
  const beside =
    payloads + deadLetters === 0
      ? ''
      : `, ${counted(payloads, 'payload')} beside the log, ${counted(deadLetters, 'dead letter')}`;
  return [
    `Forgotten: ${forgotten.user} of ${forgotten.tenant}, ${at}`,
    `Deleted: ${counted(turns, 'turn')} (${counted(facts, 'fact')}${beside})`,
    ...policies.map(
      ({ policy, lessons, learned, answers, facts: named, files, lost = [] }) =>
        `${policy}: ${counted(lessons, 'lesson')}, ${counted(named, 'fact')} that named them, ${counted(files, 'file')}; learned from them: ${learned.join(', ') || 'no version'}; ${answers || 'the base'} answers${lost.length === 0 ? '' : `; what others taught in ${lost.join(', ')} is not repeated`}`,
    ),
    'Out of reach, and to be seen to by hand:',
    ...stays.map((line) => `  ${line}`),
  ];
}

/** In the order of the schema, so that neither spaces nor the order of names matter. */
function bytesOf(receipt: Receipt): Buffer {
  return Buffer.from(JSON.stringify(receiptSchema.parse(receipt)));
}
