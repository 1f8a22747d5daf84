// What stands of a policy under a key of its own: in bucket `settings` what operators ask of its trainer, and whether the data folder is full; in
// bucket `tries` how far its trainer has come. Each is described here alone, for those who write it and those who read it.
import { z, type ZodType } from 'zod';
import type { Broker } from '../broker/connect.js';
import type { BucketName } from '../topology/buckets.js';
import { jsonCodec, kvBucket, type KvEntry } from './kv-bucket.js';

/** One value, as a bucket keeps it under one key. */
export interface PolicyDocument<T> {
  get(): Promise<KvEntry<T> | undefined>;
  put(value: T): Promise<number>;
  /** Throws `kv_conflict` when there is one. */
  create(value: T): Promise<number>;
  /** Throws `kv_conflict` when the revision is not the newest. */
  update(value: T, revision: number): Promise<number>;
  delete(): Promise<void>;
  /** Gives what there is, then every change; nothing where it was deleted. One that cannot be read is passed over. */
  watch(onValue: (value: T | undefined) => void, signal?: AbortSignal): Promise<() => void>;
}

type DocumentOf<T> = (broker: Broker, policy: string) => PolicyDocument<T>;

function documentOf<T>(bucket: BucketName, keyOf: (policy: string) => string, schema: ZodType<T>): DocumentOf<T> {
  const codec = jsonCodec(schema);
  return (broker, policy) => {
    const [values, key] = [kvBucket(broker, bucket, codec), keyOf(policy)];
    return {
      get: () => values.get(key),
      put: (value) => values.put(key, value),
      create: (value) => values.create(key, value),
      update: (value, revision) => values.update(key, value, revision),
      delete: () => values.delete(key),
      watch: (onValue, signal) =>
        values.watch(
          key,
          (change) => {
            // Documents do not expire: the copy that the watch now hears lags behind, or the bucket was lost, and what was asked for holds.
            if (change.kind !== 'expired') onValue(change.kind === 'put' ? change.value : undefined);
          },
          signal,
        ),
    };
  };
}

const whole = z.number().int();

const learningSchema = z.object({
  paused: z.boolean().default(false),
  /** Number of the version that was the newest when an operator last said that learning goes on: burned ones up to it count no more. */
  resumedAfter: whole.optional(),
  /** Number of the newest batch then: given-up ones up to it count no more. */
  resumedAfterBatch: whole.optional(),
});

export type LearningSwitch = Readonly<z.infer<typeof learningSchema>>;

/** Operators stop learning and let it go on. */
export const learningSwitch = documentOf<LearningSwitch>('settings', (policy) => `${policy}.learning`, learningSchema);

/** Whether the data folder has reached its cap: beside the operators' own switch, since their pause outlives a full disk. */
export const storageRoom = documentOf(
  'settings',
  (policy) => `${policy}.storage`,
  z.object({ full: z.boolean().default(false) }),
);

/** The batch that an operator has given up. */
export const abandonedBatch = documentOf('settings', (policy) => `${policy}.abandon`, z.object({ batch: whole }));

const rebuildSchema = z.object({
  id: z.string(),
  version: z.string(),
  /** A replay: the first of a row of versions that ends with `version`, each made upon the one before as it comes out now. */
  from: z.string().optional(),
  /** Of a replay, what its steps' recipes have otherwise than they had (`learningRate=5e-4,optimizerSteps=2`); empty: nothing. */
  recipe: z.string().default(''),
  /** Of a replay, the asking by which its turns were judged again; empty: judgements are those of the log. */
  judged: z.string().default(''),
});

/** A version that an operator wants made again. */
export type AskedRebuild = Readonly<z.infer<typeof rebuildSchema>>;

export const askedRebuild = documentOf<AskedRebuild>('settings', (policy) => `${policy}.rebuild`, rebuildSchema);

const triedSchema = z.object({
  batch: whole.min(0),
  tries: whole.min(0),
  /** Of the newest failure; empty while a try runs, and after one that ended the process. */
  code: z.string(),
});

/** How often the step of the policy's open batch was tried. */
export type TriedStep = Readonly<z.infer<typeof triedSchema>>;

export const triedStep = documentOf<TriedStep>('tries', (policy) => `trainer.batch.${policy}`, triedSchema);

const replayedSchema = z.object({
  version: z.string(),
  /** Names of the files that are not what they were; none where all are. */
  differing: z.array(z.string()),
  /** Of the step's report, by name. */
  measurements: z.record(z.string(), z.number()),
  /** Where its turns were judged again: how many of them, and of how many verdict and hint are others; `refused` were not. */
  rejudged: z.object({ turns: z.number(), verdicts: z.number(), hints: z.number(), refused: z.number() }).optional(),
});

/** What a version of a replay came out as. */
export type Replayed = Readonly<z.infer<typeof replayedSchema>>;

const rebuiltSchema = z.object({
  /** Of what was asked. */
  asked: z.string(),
  version: z.string(),
  state: z.enum(['running', 'equal', 'different', 'failed']),
  /** Versions that were made again, its parents among them, and how many are to be. */
  done: whole,
  of: whole,
  detail: z.string(),
  /** Of a replay, oldest first. */
  replayed: z.array(replayedSchema).default([]),
  /** Digest of the manifest that the newest version of a replay came out as; its files are kept until more is asked for. */
  manifest: z.string().default(''),
});

/** How far a version that is made again has come. */
export type RebuildProgress = Readonly<z.infer<typeof rebuiltSchema>>;

export const rebuildProgress = documentOf<RebuildProgress>(
  'tries',
  (policy) => `trainer.rebuild.${policy}`,
  rebuiltSchema,
);
