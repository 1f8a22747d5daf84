// Turns what the S3 client throws into the house's errors, once, at the edge. It retries nothing.
import { asBacktalkError } from '../errors/as-backtalk-error.js';
import { BacktalkError } from '../errors/backtalk-error.js';
import { blobErrors } from './errors.js';

export interface S3Doing {
  readonly doing: string;
  readonly bucket: string;
  readonly digest?: string;
}

const refused: ReadonlySet<string> = new Set([
  'NoSuchBucket',
  'AccessDenied',
  'InvalidAccessKeyId',
  'SignatureDoesNotMatch',
  'Forbidden',
]);
/** What servers say when their disk or their quota is used up. */
const full: ReadonlySet<string> = new Set([
  'XMinioStorageFull',
  'QuotaExceeded',
  'InsufficientStorage',
  'EntityTooLarge',
]);

export function isPreconditionFailed(error: unknown): boolean {
  return statusOf(error) === 412;
}

/** Servers that do not know conditional writes. */
export function isUnsupportedCondition(error: unknown): boolean {
  return statusOf(error) === 501;
}

export function s3Error(thrown: unknown, { doing, bucket, digest }: S3Doing): BacktalkError {
  if (thrown instanceof BacktalkError) return thrown;
  const name = thrown instanceof Error ? thrown.name : '';
  const status = statusOf(thrown);
  if (refused.has(name) || status === 401 || status === 403) {
    return blobErrors.blobStoreRefused({ bucket, reason: name }, thrown);
  }
  if (status === 404) return blobErrors.blobMissing({ digest: digest ?? bucket }, thrown);
  if (full.has(name) || status === 507) return blobErrors.blobStoreFull({}, thrown);
  if (status !== undefined) return blobErrors.blobStoreFailed({ doing, reason: name }, thrown);
  const translated = asBacktalkError(thrown);
  return translated.code === 'internal' ? blobErrors.blobStoreFailed({ doing, reason: name }, thrown) : translated;
}

function statusOf(error: unknown): number | undefined {
  const metadata: unknown = typeof error === 'object' && error !== null ? Reflect.get(error, '$metadata') : undefined;
  const status: unknown =
    typeof metadata === 'object' && metadata !== null ? Reflect.get(metadata, 'httpStatusCode') : undefined;
  return typeof status === 'number' ? status : undefined;
}
