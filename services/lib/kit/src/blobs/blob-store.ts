// Bytes that are named by what they are. In: bytes. Out: their sha256, by which they come back, verified.
import { defineErrors, isBacktalkError } from '../errors/backtalk-error.js';

export interface BlobInfo {
  readonly digest: string;
  readonly bytes: number;
  /** When it was last put: sweeping spares what is young. */
  readonly modifiedMs: number;
}

export interface BlobStore {
  /** Putting the same bytes again is cheap and renews their age. */
  put(bytes: Uint8Array): Promise<string>;
  /** Throws `blob_missing` or `blob_corrupt`. */
  get(digest: string): Promise<Uint8Array>;
  has(digest: string): Promise<boolean>;
  /** Deleting what is not there is no error. */
  delete(digest: string): Promise<void>;
  list(): AsyncIterable<BlobInfo>;
}

export const blobErrors = defineErrors('blobs', {
  blobMissing: {
    code: 'blob_missing',
    retry: 'later',
    message: (p: { digest: string }) => `Blob ${p.digest} is not in the store.`,
  },
  blobCorrupt: {
    code: 'blob_corrupt',
    retry: 'never',
    message: (p: { digest: string }) => `Blob ${p.digest} has other bytes than its name says.`,
  },
  blobStoreFull: {
    code: 'blob_store_full',
    status: 503,
    retry: 'later',
    message: () => 'The blob store is full: nothing more is stored until space is freed.',
  },
  blobStoreFailed: {
    code: 'blob_store_failed',
    // It is down: no fault of the fact that needs it, which waits.
    status: 503,
    retry: 'later',
    message: (p: { doing: string; reason: string }) => `The blob store failed (${p.doing}, ${p.reason}).`,
  },
  blobStoreRefused: {
    code: 'blob_store_refused',
    status: 503,
    retry: 'later',
    message: (p: { bucket: string; reason: string }) =>
      `Bucket ${p.bucket} cannot be used (${p.reason}): check BACKTALK_S3_BUCKET, BACKTALK_S3_ACCESS_KEY and BACKTALK_S3_SECRET_KEY.`,
  },
  blobBucketUnnamed: {
    code: 'blob_bucket_unnamed',
    retry: 'stop',
    message: () => 'BACKTALK_BLOB_STORE is s3, and BACKTALK_S3_BUCKET names no bucket: set it.',
  },
  blobBucketRefused: {
    code: 'blob_bucket_refused',
    retry: 'stop',
    message: (p: { bucket: string; reason: string }) =>
      `Bucket ${p.bucket} cannot be used (${p.reason}): check BACKTALK_S3_BUCKET, BACKTALK_S3_ACCESS_KEY and BACKTALK_S3_SECRET_KEY.`,
  },
  blobSettingsInvalid: {
    code: 'blob_settings_invalid',
    retry: 'stop',
    message: (p: { what: string }) => `BACKTALK_BLOB_STORE is s3, and ${p.what}.`,
  },
  blobDigestInvalid: {
    code: 'blob_digest_invalid',
    retry: 'never',
    message: () => 'A blob is named by 64 hexadecimal digits.',
  },
  blobStoreAbsent: {
    code: 'blob_store_absent',
    retry: 'stop',
    message: () => 'A fact keeps its payload in the blob store, but this service was given none.',
  },
});

/** Whether a blob comes back with the bytes that its name says: a repeated put mends one that does not. */
export async function isSound(store: Pick<BlobStore, 'get'>, digest: string): Promise<boolean> {
  try {
    await store.get(digest);
    return true;
  } catch (error) {
    if (isBacktalkError(error, 'blob_corrupt') || isBacktalkError(error, 'blob_missing')) return false;
    throw error;
  }
}

/** What else lies in a store is not of ours. */
export function isDigest(text: string): boolean {
  return /^[0-9a-f]{64}$/.test(text);
}

export function checkDigest(text: string): string {
  if (!isDigest(text)) throw blobErrors.blobDigestInvalid();
  return text;
}
