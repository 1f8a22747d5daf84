// Which files of old versions may go. Only files that some manifest names are ever swept: the store holds blobs of others, too.
import { versionNumber } from '@backtalk/kit';
import { WeightsStaged_Stage } from '@backtalk/proto/facts';
import type { WeightsManifest } from '@backtalk/proto/weights';

import type { VersionLine, VersionRecord } from './version-line.js';

const adaptersKept = 10;
const statesKept = 3;
const stateEvery = 50;
/** Where a training service keeps what the step after a version begins with, as the training worker names it. */
const remoteState = 'remote.json';
/** The next parent, and the one before it for a rollback. */
const parentsKept = 2;
/** Older versions were looked at when they were younger. */
const lookedAtMax = 200;

const servingStages = new Set<WeightsStaged_Stage>([
  WeightsStaged_Stage.STAGE_CANDIDATE,
  WeightsStaged_Stage.STAGE_CANARY,
  WeightsStaged_Stage.STAGE_STABLE,
]);

export interface Keeping {
  /** Newest last; the manifests that `sweepable` needs. */
  readonly looked: readonly VersionRecord[];
  readonly adapters: ReadonlySet<string>;
  readonly states: ReadonlySet<string>;
}

export function keeping(line: VersionLine, policy: string): Keeping {
  const all = line.versions();
  const parents = all.filter(({ version }) => !line.isTainted(version)).slice(-parentsKept);
  const serving = all.filter(({ version }) => servingStages.has(line.stageOf(version))).slice(-parentsKept);
  const every = all.filter(({ version }) => (versionNumber(policy, version) ?? 0) % stateEvery === 0);
  const names = (records: readonly VersionRecord[]): string[] => records.map(({ version }) => version);
  return {
    looked: all.slice(-lookedAtMax),
    adapters: new Set(names([...all.slice(-adaptersKept), ...parents, ...serving])),
    states: new Set(names([...all.slice(-statesKept), ...parents, ...every])),
  };
}

export function sweepable(
  keep: Keeping,
  manifests: ReadonlyMap<string, WeightsManifest>,
  youngestMs: number,
): string[] {
  const marked = new Set<string>();
  const leaving = new Set<string>();
  for (const { version, trainedAtMs } of keep.looked) {
    const manifest = manifests.get(version);
    if (manifest === undefined) continue;
    const young = trainedAtMs > youngestMs;
    for (const { name, digest } of manifest.adapter)
      if (isWeights(name)) (young || keep.adapters.has(version) ? marked : leaving).add(digest);
    for (const { name, digest } of manifest.trainingState) {
      // A path of a line, without which a training service cannot go on from there: it starts nothing afresh.
      if (name !== remoteState) (young || keep.states.has(version) ? marked : leaving).add(digest);
    }
  }
  return [...leaving].filter((digest) => !marked.has(digest));
}

/** The rest is small, and the same file for other policies, too. */
function isWeights(name: string): boolean {
  return name.endsWith('.safetensors');
}
