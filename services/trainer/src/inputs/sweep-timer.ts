// Sweeps files of old versions, and payloads of facts that the log holds no more, out of the blob store, at a fixed interval. A failed sweep is tried at the next turn of the timer;
// nothing waits for it.
import {
  adoptPayloads,
  asBacktalkError,
  isBacktalkError,
  jsonCodec,
  kvBucket,
  sweepPayloads,
  type Broker,
  type Clock,
} from '@backtalk/kit';
import type { WeightsManifest } from '@backtalk/proto/weights';
import { z } from 'zod';

import { keeping, sweepable } from '../domain/kept-files.js';
import type { StepStore } from '../outputs/step-store.js';
import type { PolicyState } from './policy-state.js';
import type { TrainerTools } from './trainer-tools.js';

export interface SweepTimes {
  readonly sweepEveryMs: number;
  readonly sweepGraceMs: number;
}

export async function sweepFiles(
  { store, events }: TrainerTools,
  state: PolicyState,
  times: SweepTimes,
  clock: Clock,
  signal: AbortSignal,
): Promise<void> {
  await sweepNowAndThen(times, clock, signal, async (youngestMs) => {
    // What is being made again is needed for the next of its steps.
    if (state.asked !== undefined) return;
    try {
      events.filesSwept(state.policy, await sweep(store, state, youngestMs));
    } catch (error) {
      events.sweepFailed(state.policy, asBacktalkError(error));
    }
  });
}

/** Those of facts of every policy, so there is one sweep for the process that leads. */
export async function sweepFactPayloads(
  { store, events }: TrainerTools,
  broker: Broker,
  times: SweepTimes,
  clock: Clock,
  signal: AbortSignal,
): Promise<void> {
  const adopted = kvBucket(broker, 'tries', jsonCodec(z.object({ adopted: z.number() })));
  await sweepNowAndThen(times, clock, signal, async (youngestMs) => {
    try {
      if ((await adopted.get(adoptedKey)) === undefined)
        await adopted.put(adoptedKey, { adopted: await adoptPayloads(broker) });
      events.payloadsSwept(await sweepPayloads(broker, store.blobs, youngestMs));
    } catch (error) {
      events.payloadSweepFailed(asBacktalkError(error));
    }
  });
}

const adoptedKey = 'trainer.payloads';
const firstSweepMs = 60_000;

async function sweepNowAndThen(
  { sweepEveryMs, sweepGraceMs }: SweepTimes,
  clock: Clock,
  signal: AbortSignal,
  sweepOlder: (youngestMs: number) => Promise<void>,
): Promise<void> {
  // A process that ends before its first interval is over sweeps, too.
  let waitMs = Math.min(sweepEveryMs, firstSweepMs);
  while (!signal.aborted) {
    await clock.sleep(waitMs, signal).catch(() => undefined);
    if (!signal.aborted) await sweepOlder(clock.now() - sweepGraceMs);
    waitMs = sweepEveryMs;
  }
}

async function sweep(store: StepStore, state: PolicyState, youngestMs: number): Promise<number> {
  const { line } = await state.ledger();
  const keep = keeping(line, state.policy);
  const manifests = new Map<string, WeightsManifest>();
  for (const { version, manifestDigest } of keep.looked) {
    try {
      manifests.set(version, await store.manifest(manifestDigest));
    } catch (error) {
      // Without its manifest nothing is known of the version's files, so nothing of them is swept.
      if (!isBacktalkError(error, 'blob_missing') && !isBacktalkError(error, 'blob_corrupt')) throw error;
    }
  }
  for (const [digest, atMs] of state.remade) if (atMs <= youngestMs) state.remade.delete(digest);
  let swept = 0;
  for (const digest of sweepable(keep, manifests, youngestMs)) {
    if (state.remade.has(digest) || !(await store.blobs.has(digest))) continue;
    await store.blobs.delete(digest);
    swept += 1;
  }
  return swept;
}
