// Plans and manifests in the blob store. A blob is named by its bytes, so nothing is ever overwritten.
import { baseVersion, isBacktalkError, type BlobStore } from '@backtalk/kit';
import type { BatchClosed } from '@backtalk/proto/facts';
import { WeightsManifest } from '@backtalk/proto/weights';

import type { Recipe } from '../domain/recipe.js';
import { recipeInPlan, replayPlan } from '../domain/replay-plan.js';
import { decodePlan, type StepPlan, type StoredPlan } from '../domain/step-plan.js';
import type { VersionLine } from '../domain/version-line.js';
import { trainerErrors } from '../errors.js';
import { NamedFiles } from './named-files.js';

export class StepStore {
  readonly names = new NamedFiles(this);

  constructor(readonly blobs: BlobStore) {}

  /** Before a batch names it: a closed batch whose plan is nowhere could never be trained. */
  async keepPlan(plan: StoredPlan): Promise<void> {
    await this.blobs.put(plan.bytes);
  }

  async planOf({ configDigest: digest }: BatchClosed): Promise<StepPlan> {
    const plan = decodePlan(await this.blobs.get(digest));
    if (plan === undefined) throw trainerErrors.planUnreadable({ digest });
    return plan;
  }

  /** Undefined where it is gone, broken, or of a release that this one cannot read. */
  async planIfThere({ configDigest: digest }: BatchClosed): Promise<StepPlan | undefined> {
    try {
      return decodePlan(await this.blobs.get(digest));
    } catch (error) {
      if (isBacktalkError(error, 'blob_missing') || isBacktalkError(error, 'blob_corrupt')) return undefined;
      throw error;
    }
  }

  /** As it was, but for what an operator wants otherwise. */
  async replayPlanOf({ configDigest: digest }: BatchClosed, recipe: string): Promise<StepPlan> {
    const reading = replayPlan(await this.blobs.get(digest), recipe);
    if ('problems' in reading) throw trainerErrors.replayRefused({ problems: reading.problems });
    return reading.plan;
  }

  /** Whole, as the batch closed with it. */
  async recipeOf({ configDigest: digest, version }: BatchClosed): Promise<Recipe> {
    const recipe = recipeInPlan(await this.blobs.get(digest));
    if (recipe === undefined)
      throw trainerErrors.replayRefused({ problems: [`The recipe of ${version} cannot be read.`] });
    return recipe;
  }

  async keepManifest(manifest: WeightsManifest): Promise<string> {
    return this.blobs.put(WeightsManifest.encode(manifest).finish());
  }

  async manifest(digest: string): Promise<WeightsManifest> {
    return WeightsManifest.decode(await this.blobs.get(digest));
  }

  /** Undefined for the base, which has no files. */
  async manifestOfVersion(policy: string, version: string, line: VersionLine): Promise<WeightsManifest | undefined> {
    if (version === baseVersion(policy)) return undefined;
    const record = line.get(version);
    if (record === undefined) throw trainerErrors.versionUnknown({ version });
    return this.manifest(record.manifestDigest);
  }
}
