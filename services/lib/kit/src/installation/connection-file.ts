// How commands find a running machine, and what the next start goes on with: `connection.json` in its data folder, which only its
// owner reads. In: the file, or what is to stand in it. Out: all that it says; nothing where there is none; or one line that says what
// is wrong with it, and repeats nothing of it, because keys and passwords are in it.
import { existsSync, readFileSync } from 'node:fs';
import { z } from 'zod';
import { defineErrors } from '../errors/backtalk-error.js';
import { quantizations } from '../model/model-memory.js';
import { baseFiles } from './base-files.js';

/** Never with its key. */
const keptJudge = z.object({ url: z.string(), model: z.string(), keyFile: z.string().optional() }).readonly();
/** Never with its key. */
const keptEngine = z.union([
  z.literal('vllm'),
  z.object({ url: z.string(), dialect: z.enum(['vllm', 'sglang']), keyFile: z.string().optional() }).readonly(),
]);

const connectionFile = z
  .object({
    endpoint: z.url(),
    engine: z.url(),
    /** Empty for an engine elsewhere, whose key nothing here keeps. */
    engineKey: z.string().default(''),
    /** File with the key of an engine elsewhere. */
    engineKeyFile: z.string().optional(),
    /** The secret of rollbacks. */
    cliToPublisher: z.string().default(''),
    /** What commands are about that name none. */
    policy: z.string(),
    /** All that are served and trained. */
    policies: z.array(z.string()).readonly().default([]),
    baseModel: z.string(),
    /** Folder of a base model that is not the laptop's. */
    model: z.string().optional(),
    /** The base model's weights, as they were at the start. */
    baseFiles: baseFiles.optional(),
    dataCapBytes: z.number().optional(),
    /** The model that judges, where one was named. */
    judge: keptJudge.optional(),
    /** What answers, where it is not the built-in engine. */
    engineChoice: keptEngine.optional(),
    /** Where steps compute, where a start was told. */
    device: z.enum(['cpu', 'cuda', 'auto']).optional(),
    /** Folder of another model that teaches. */
    teacher: z.string().optional(),
    /** Of the base model's linear layers, where it is not whole. */
    quantization: z.enum(quantizations).optional(),
    natsUrl: z.string(),
    natsUser: z.string(),
    natsPassword: z.string(),
    blobStore: z.string(),
    /** Folder of the installation: its keys and secrets are in it. */
    data: z.string().optional(),
    /** Base URLs of /readyz and /metrics, by process. */
    health: z.record(z.string(), z.url()).readonly(),
  })
  .readonly();
export type ConnectionFile = z.infer<typeof connectionFile>;
export type KeptJudge = z.infer<typeof keptJudge>;
export type KeptEngine = z.infer<typeof keptEngine>;

const connectionErrors = defineErrors('installation', {
  damaged: {
    code: 'connection_damaged',
    retry: 'never',
    message: (p: { file: string; why: string }) =>
      `${p.file} is damaged (${p.why}): move it away, and start with the flags that the last start had; they stood in it.`,
  },
});

/** What is no member of it, such as the keys of engines elsewhere, is left out. */
export function connectionText(connection: ConnectionFile): string {
  return `${JSON.stringify(connectionFile.parse(connection), null, 2)}\n`;
}

/** @returns undefined where no start has written the file yet */
export function readConnectionFile(file: string): ConnectionFile | undefined {
  if (!existsSync(file)) return undefined;
  let written: unknown;
  try {
    written = JSON.parse(readFileSync(file, 'utf8'));
  } catch {
    throw connectionErrors.damaged({ file, why: 'it is no JSON, or cannot be read' });
  }
  const { data, error } = connectionFile.safeParse(written);
  if (data !== undefined) return data;
  const at = error.issues[0]?.path.join('.') ?? '';
  throw connectionErrors.damaged({ file, why: `${at === '' ? 'all of it' : at} is missing, or is no such value` });
}
