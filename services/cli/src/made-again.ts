// What `rebuild` and `replay` have in common: a wish in bucket `settings`, and the trainer's word of how far it has come.
import { jsonCodec, kvBucket, systemClock, versionParts, type Broker } from '@backtalk/kit';
import { randomUUID } from 'node:crypto';
import { z } from 'zod';
import { cliErrors } from './errors.js';

const wishCodec = jsonCodec(
  z.object({
    id: z.string(),
    version: z.string(),
    from: z.string().optional(),
    recipe: z.string().optional(),
    judged: z.string().optional(),
  }),
);
const progressSchema = z.object({
  asked: z.string(),
  version: z.string(),
  state: z.enum(['running', 'equal', 'different', 'failed']),
  done: z.number(),
  of: z.number(),
  detail: z.string(),
  replayed: z
    .array(
      z.object({
        version: z.string(),
        differing: z.array(z.string()),
        measurements: z.record(z.string(), z.number()),
        rejudged: z
          .object({ turns: z.number(), verdicts: z.number(), hints: z.number(), refused: z.number() })
          .optional(),
      }),
    )
    .default([]),
  manifest: z.string().default(''),
});
export type MadeAgain = z.infer<typeof progressSchema>;
const progressCodec = jsonCodec(progressSchema);
const lookEveryMs = 250;

export interface WishedAgain {
  readonly policy: string;
  readonly version: string;
  /** Of a replay. */
  readonly from?: string;
  readonly recipe?: string;
  /** The asking by which its turns were judged again. */
  readonly judged?: string;
}

export interface Waiting {
  readonly waitMs: number;
  readonly signal: AbortSignal;
  readonly onProgress: (progress: MadeAgain) => void;
}

export function policyOf(version: string, name = 'version'): string {
  const policy = versionParts(version)?.policy;
  if (policy === undefined)
    throw cliErrors.badArgument({ name, value: version, wanted: 'a version, such as backtalk-v3' });
  return policy;
}

/** What is asked for is not gone on with. */
export async function takeBackWish(broker: Broker, policy: string): Promise<void> {
  await kvBucket(broker, 'settings', wishCodec).delete(`${policy}.rebuild`);
}

/** What a replay came out as last, whose files no version has. */
export async function replayedManifest(broker: Broker, policy: string): Promise<string[]> {
  const manifest = (await kvBucket(broker, 'tries', progressCodec).get(`trainer.rebuild.${policy}`))?.value.manifest;
  return manifest === undefined || manifest === '' ? [] : [manifest];
}

/** Undefined, or still running, where the trainer has not come to its end in time: it goes on. */
export async function madeAgain(
  broker: Broker,
  { policy, ...wish }: WishedAgain,
  { waitMs, signal, onProgress }: Waiting,
): Promise<MadeAgain | undefined> {
  const id = randomUUID();
  await kvBucket(broker, 'settings', wishCodec).put(`${policy}.rebuild`, { id, ...wish });
  const bucket = kvBucket(broker, 'tries', progressCodec);
  const deadlineMs = systemClock.now() + waitMs;
  let shown = 0;
  for (;;) {
    const progress = (await bucket.get(`trainer.rebuild.${policy}`))?.value;
    const ours = progress?.asked === id ? progress : undefined;
    if (ours !== undefined && ours.state !== 'running') return ours;
    if (ours !== undefined && ours.done > shown) {
      shown = ours.done;
      onProgress(ours);
    }
    if (signal.aborted || systemClock.now() > deadlineMs) return ours;
    await systemClock.sleep(lookEveryMs, signal).catch(() => undefined);
  }
}
