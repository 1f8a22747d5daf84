// What `rebuild` and `replay` have in common: a wish in bucket `settings`, and the trainer's word of how far it has come.
import {
  askedRebuild,
  rebuildProgress,
  systemClock,
  versionParts,
  type Broker,
  type RebuildProgress,
} from '@backtalk/kit';
import { randomUUID } from 'node:crypto';
import { cliErrors } from './errors.js';

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
  readonly onProgress: (progress: RebuildProgress) => void;
}

export function policyOf(version: string, name = 'version'): string {
  const policy = versionParts(version)?.policy;
  if (policy === undefined)
    throw cliErrors.badArgument({ name, value: version, wanted: 'a version, such as backtalk-v3' });
  return policy;
}

/** What is asked for is not gone on with. */
export async function takeBackWish(broker: Broker, policy: string): Promise<void> {
  await askedRebuild(broker, policy).delete();
}

/** What a replay came out as last, whose files no version has. */
export async function replayedManifest(broker: Broker, policy: string): Promise<string[]> {
  const manifest = (await rebuildProgress(broker, policy).get())?.value.manifest;
  return manifest === undefined || manifest === '' ? [] : [manifest];
}

/** Undefined, or still running, where the trainer has not come to its end in time: it goes on. */
export async function madeAgain(
  broker: Broker,
  { policy, ...wish }: WishedAgain,
  { waitMs, signal, onProgress }: Waiting,
): Promise<RebuildProgress | undefined> {
  const id = randomUUID();
  await askedRebuild(broker, policy).put({ id, recipe: '', judged: '', ...wish });
  const made = rebuildProgress(broker, policy);
  const deadlineMs = systemClock.now() + waitMs;
  let shown = 0;
  for (;;) {
    const progress = (await made.get())?.value;
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
