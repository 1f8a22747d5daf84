// Files of versions that learned from a person who is forgotten, and of those that could answer in their place. In: manifests. Out: how many
// blobs went, and which versions an engine could load. An adapter's configuration is no person's, and every version of a base model has the
// same one: it stays.
import { isBacktalkError, type BlobStore } from '@backtalk/kit';
import { WeightsManifest } from '@backtalk/proto/weights';
import type { Answering } from './forget-plan.js';

const configuration = 'adapter_config.json';

/** @param others manifests of all versions that stay, of every policy: what they name stays */
export async function deleteFilesOf(
  blobs: BlobStore,
  theirs: readonly string[],
  others: readonly string[],
): Promise<number> {
  const kept = new Set([...others, ...(await filesOf(blobs, others))]);
  const going = [...(await filesOf(blobs, theirs)), ...theirs].filter((digest) => !kept.has(digest));
  let deleted = 0;
  // Manifests last: without one, its files could not be found again.
  for (const digest of new Set(going)) {
    if (!(await blobs.has(digest))) continue;
    await blobs.delete(digest);
    deleted += 1;
  }
  return deleted;
}

/** The first of which every file that engines load is there; the base needs none. */
export async function firstLoadable(blobs: BlobStore, versions: readonly Answering[]): Promise<Answering | undefined> {
  for (const one of versions) {
    if (one.manifest === '') return one;
    const { adapter } = (await manifestAt(blobs, one.manifest)) ?? { adapter: [] };
    const isThere = await Promise.all(adapter.map(({ digest }) => blobs.has(digest)));
    if (adapter.length > 0 && isThere.every(Boolean)) return one;
  }
  return undefined;
}

async function filesOf(blobs: BlobStore, manifests: readonly string[]): Promise<string[]> {
  const files: string[] = [];
  for (const digest of manifests) {
    const { adapter, trainingState } = (await manifestAt(blobs, digest)) ?? { adapter: [], trainingState: [] };
    const named = [...adapter, ...trainingState].filter(({ name }) => name !== configuration);
    files.push(...named.map((file) => file.digest));
  }
  return files;
}

/** Undefined where it was swept, or deleted by an earlier try. */
async function manifestAt(blobs: BlobStore, digest: string): Promise<WeightsManifest | undefined> {
  try {
    return WeightsManifest.decode(await blobs.get(digest));
  } catch (error) {
    if (!isBacktalkError(error, 'blob_missing')) throw error;
    return undefined;
  }
}
