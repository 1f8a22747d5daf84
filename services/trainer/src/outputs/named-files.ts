// Which files the versions of a policy name: what a step made and no version has would lie in the store without an end.
import { isBacktalkError } from '@backtalk/kit';
import type { WeightsManifest } from '@backtalk/proto/weights';

import type { VersionLine } from '../domain/version-line.js';
import type { StepStore } from './step-store.js';

export class NamedFiles {
  /** By digest of a manifest: each is read once in a replay, whose every step asks for all. */
  private readonly named = new Map<string, readonly string[]>();

  constructor(private readonly store: StepStore) {}

  clear(): void {
    this.named.clear();
  }

  /**
   * Deletes the tensors that no version of the line names.
   * @param others digests of further manifests whose files stay
   */
  async letGo(
    { adapter, trainingState }: Pick<WeightsManifest, 'adapter' | 'trainingState'>,
    line: VersionLine,
    others: readonly string[] = [],
  ): Promise<void> {
    // A step that moves nothing comes out as its parent, whatever it is called.
    const digests = [...line.versions().map(({ manifestDigest }) => manifestDigest), ...others];
    const named = new Set<string>();
    for (const digest of digests) for (const file of await this.filesOf(digest)) named.add(file);
    // What is no tensor may be the same file in versions of any policy.
    const tensors = [...adapter, ...trainingState].filter(({ name }) => name.endsWith('.safetensors'));
    for (const { digest } of tensors) if (!named.has(digest)) await this.store.blobs.delete(digest);
  }

  /** Manifests of people who are forgotten are gone. */
  async manifestIfThere(digest: string): Promise<WeightsManifest | undefined> {
    try {
      return digest === '' ? undefined : await this.store.manifest(digest);
    } catch (error) {
      if (!isBacktalkError(error, 'blob_missing')) throw error;
      return undefined;
    }
  }

  private async filesOf(digest: string): Promise<readonly string[]> {
    const known = this.named.get(digest);
    if (known !== undefined) return known;
    const manifest = await this.manifestIfThere(digest);
    const files = [...(manifest?.adapter ?? []), ...(manifest?.trainingState ?? [])].map((file) => file.digest);
    this.named.set(digest, files);
    return files;
  }
}
