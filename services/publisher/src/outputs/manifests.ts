// Reads manifests from the blob store.
import { isBacktalkError, type BlobStore } from '@backtalk/kit';
import { WeightsManifest } from '@backtalk/proto/weights';
import { publisherErrors } from '../errors.js';

export async function readManifest(blobs: BlobStore, version: string, digest: string): Promise<WeightsManifest> {
  try {
    return WeightsManifest.decode(await blobs.get(digest));
  } catch (error) {
    // Missing bytes may come; broken ones stay broken.
    if (isBacktalkError(error) && error.retry === 'later') throw error;
    throw publisherErrors.manifestInvalid({ version }, error);
  }
}
