// How far a version that is made again has come, in bucket `tries` under `trainer.rebuild.<policy>`: an operator's command reads it.
import { jsonCodec, kvBucket, type Broker, type KvBucket } from '@backtalk/kit';
import { z } from 'zod';

const replayedSchema = z.object({
  version: z.string(),
  /** Names of the files that are not what they were; none where all are. */
  differing: z.array(z.string()),
  /** Of the step's report, by name. */
  measurements: z.record(z.string(), z.number()),
  /** Where its turns were judged again: how many of them, and of how many verdict and hint are others; `refused` were not. */
  rejudged: z.object({ turns: z.number(), verdicts: z.number(), hints: z.number(), refused: z.number() }).optional(),
});

const progressSchema = z.object({
  /** Of what was asked. */
  asked: z.string(),
  version: z.string(),
  state: z.enum(['running', 'equal', 'different', 'failed']),
  /** Versions that were made again, its parents among them, and how many are to be. */
  done: z.number().int(),
  of: z.number().int(),
  detail: z.string(),
  /** Of a replay, oldest first. */
  replayed: z.array(replayedSchema).default([]),
  /** Digest of the manifest that the newest version of a replay came out as; its files are kept until more is asked for. */
  manifest: z.string().default(''),
});

/** What a version of a replay came out as. */
export type Replayed = Readonly<z.infer<typeof replayedSchema>>;

export type RebuildProgress = Readonly<z.infer<typeof progressSchema>>;

export class RebuildProgressStore {
  private readonly bucket: KvBucket<RebuildProgress>;

  constructor(broker: Broker) {
    this.bucket = kvBucket<RebuildProgress>(broker, 'tries', jsonCodec(progressSchema));
  }

  async of(policy: string): Promise<RebuildProgress | undefined> {
    return (await this.bucket.get(keyOf(policy)))?.value;
  }

  async keep(policy: string, progress: RebuildProgress): Promise<void> {
    await this.bucket.put(keyOf(policy), progress);
  }
}

function keyOf(policy: string): string {
  return `trainer.rebuild.${policy}`;
}
