// Files of versions that learned from a person who is forgotten. In: manifests of those versions and of all others. Out: how many blobs went:
// manifests and what they name, but nothing that another version names too.
import { isBacktalkError, type BlobStore } from '@backtalk/kit';
import { WeightsManifest } from '@backtalk/proto/weights';

export async function deleteFilesOf(
  blobs: BlobStore,
  { theirs, others }: { readonly theirs: readonly string[]; readonly others: readonly string[] },
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

async function filesOf(blobs: BlobStore, manifests: readonly string[]): Promise<string[]> {
  const files: string[] = [];
  for (const digest of manifests) {
    try {
      const { adapter, trainingState } = WeightsManifest.decode(await blobs.get(digest));
      files.push(...[...adapter, ...trainingState].map((file) => file.digest));
    } catch (error) {
      // Swept before, or by an earlier try.
      if (!isBacktalkError(error, 'blob_missing')) throw error;
    }
  }
  return files;
}
