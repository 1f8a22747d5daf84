// Sweeps files of old versions out of the blob store, now and then. In: time. Out: fewer blobs.
// A failed sweep is tried at the next turn of the timer; nothing waits for it.
import { asBacktalkError, isBacktalkError, type Clock } from '@backtalk/kit';
import type { WeightsManifest } from '@backtalk/proto/weights';

import { keeping, sweepable, type Keeping } from '../domain/kept-files.js';
import type { TrainerEvents } from '../events.js';
import type { StepStore } from '../outputs/step-store.js';
import type { Desk } from './desk.js';

export interface SweepParts {
  readonly desk: Desk;
  readonly store: StepStore;
  readonly everyMs: number;
  readonly graceMs: number;
  readonly events: TrainerEvents;
  readonly clock: Clock;
}

export async function sweepNowAndThen(parts: SweepParts, signal: AbortSignal): Promise<void> {
  const { desk, everyMs, events, clock } = parts;
  while (!signal.aborted) {
    await clock.sleep(everyMs, signal).catch(() => undefined);
    if (signal.aborted) return;
    try {
      events.filesSwept(desk.policy, await sweep(parts));
    } catch (error) {
      events.sweepFailed(desk.policy, asBacktalkError(error));
    }
  }
}

async function sweep({ desk, store, graceMs, clock }: SweepParts): Promise<number> {
  const { line } = await desk.openBooks();
  const keep = keeping(line, desk.policy);
  const going = sweepable(keep, await manifestsOf(keep, store), clock.now() - graceMs);
  let swept = 0;
  for (const digest of going) {
    if (!(await store.blobs.has(digest))) continue;
    await store.blobs.delete(digest);
    swept += 1;
  }
  return swept;
}

async function manifestsOf(keep: Keeping, store: StepStore): Promise<Map<string, WeightsManifest>> {
  const manifests = new Map<string, WeightsManifest>();
  for (const { version, manifestDigest } of keep.looked) {
    try {
      manifests.set(version, await store.manifest(manifestDigest));
    } catch (error) {
      // Without its manifest nothing is known of the version's files, so nothing of them is swept.
      if (!isBacktalkError(error, 'blob_missing') && !isBacktalkError(error, 'blob_corrupt')) throw error;
    }
  }
  return manifests;
}
