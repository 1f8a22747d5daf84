// A blob store in a bucket of S3, or of a server that speaks like it. The client is loaded only when this store is
// chosen. A blob appears whole or not at all, as the protocol has it; what is read is hashed again. Every call has a
// deadline, and the client tries a call that may pass three times within it.
import type * as S3 from '@aws-sdk/client-s3';
import { asBacktalkError, BacktalkError } from '../errors/backtalk-error.js';
import { sha256Hex } from '../identity/ids.js';
import { blobErrors, type BlobInfo, type BlobStore, checkDigest, isSound, isDigest } from './blob-store.js';

export interface S3BlobOptions {
  /** Empty: Amazon's own, by region. */
  readonly endpoint: string;
  readonly bucket: string;
  readonly region: string;
  /** Empty: what the environment of the pod gives, such as its role. */
  readonly accessKey: string;
  readonly secretKey: string;
  readonly askWithinMs?: number;
  /** Of one call that carries a whole blob. */
  readonly moveWithinMs?: number;
}

type Sdk = typeof S3;

/** Lets a bucket be shared with others. */
const prefix = 'backtalk/';
const connectWithinMs = 3_000;

/** Throws `blob_bucket_refused` where the server does not let this key list the bucket; one that is away now may be back later. */
export async function openS3BlobStore(options: S3BlobOptions): Promise<BlobStore> {
  const sdk = await import('@aws-sdk/client-s3');
  const { endpoint, region, accessKey: accessKeyId, secretKey: secretAccessKey, moveWithinMs = 120_000 } = options;
  const client = new sdk.S3Client({
    region,
    // Compatible servers rarely have a host name for each bucket.
    ...(endpoint === '' ? {} : { endpoint, forcePathStyle: true }),
    ...(accessKeyId === '' ? {} : { credentials: { accessKeyId, secretAccessKey } }),
    // Checksums in trailers are refused by many compatible servers; the digest is checked here.
    requestChecksumCalculation: 'WHEN_REQUIRED',
    responseChecksumValidation: 'WHEN_REQUIRED',
    maxAttempts: 3,
    requestHandler: { connectionTimeout: connectWithinMs, requestTimeout: moveWithinMs },
  });
  const { bucket, askWithinMs = 10_000 } = options;
  const look = new sdk.ListObjectsV2Command({ Bucket: bucket, Prefix: prefix, MaxKeys: 1 });
  await client.send(look, { abortSignal: AbortSignal.timeout(askWithinMs) }).catch((error: unknown) => {
    const { code } = s3Error(error, { doing: 'look', bucket });
    if (code === 'blob_store_refused') throw blobErrors.blobBucketRefused({ bucket, reason: nameOf(error) }, error);
  });
  return new S3BlobStore(sdk, client, bucket, { askWithinMs, moveWithinMs });
}

class S3BlobStore implements BlobStore {
  /** False once the server has refused conditional writes. */
  private conditional = true;

  constructor(
    private readonly sdk: Sdk,
    private readonly client: S3.S3Client,
    private readonly bucket: string,
    private readonly times: { readonly askWithinMs: number; readonly moveWithinMs: number },
  ) {}

  async put(bytes: Uint8Array): Promise<string> {
    const digest = sha256Hex(bytes);
    const size = await this.sizeOf(digest);
    if (size !== bytes.byteLength || !(await isSound(this, digest))) {
      await this.write(digest, bytes, size === undefined);
      return digest;
    }
    // Copied onto itself: its bytes stay where they are, and its age begins anew.
    const { Bucket, Key } = this.at(digest);
    const command = new this.sdk.CopyObjectCommand({
      Bucket,
      Key,
      CopySource: `${Bucket}/${Key}`,
      MetadataDirective: 'REPLACE',
    });
    await this.client.send(command, this.ask()).catch((error: unknown) => {
      throw s3Error(error, { doing: 'renew', digest, bucket: this.bucket });
    });
    return digest;
  }

  async get(digest: string): Promise<Uint8Array> {
    const command = new this.sdk.GetObjectCommand(this.at(digest));
    const bytes = await this.client
      .send(command, this.move())
      .then(async ({ Body: body }) => (await body?.transformToByteArray()) ?? new Uint8Array())
      .catch((error: unknown) => {
        throw s3Error(error, { doing: 'get', digest, bucket: this.bucket });
      });
    if (sha256Hex(bytes) !== digest) throw blobErrors.blobCorrupt({ digest });
    return bytes;
  }

  async has(digest: string): Promise<boolean> {
    return (await this.sizeOf(digest)) !== undefined;
  }

  async delete(digest: string): Promise<void> {
    const command = new this.sdk.DeleteObjectCommand(this.at(digest));
    await this.client.send(command, this.ask()).catch((error: unknown) => {
      throw s3Error(error, { doing: 'delete', digest, bucket: this.bucket });
    });
  }

  async *list(): AsyncIterable<BlobInfo> {
    let token: string | undefined;
    do {
      const command = new this.sdk.ListObjectsV2Command({
        Bucket: this.bucket,
        Prefix: prefix,
        ...(token === undefined ? {} : { ContinuationToken: token }),
      });
      const page: S3.ListObjectsV2CommandOutput = await this.client
        .send(command, this.ask())
        .catch((error: unknown) => {
          throw s3Error(error, { doing: 'list', bucket: this.bucket });
        });
      for (const { Key: key = '', Size: bytes = 0, LastModified: modified } of page.Contents ?? []) {
        const digest = key.slice(prefix.length);
        if (isDigest(digest)) yield { digest, bytes, modifiedMs: modified?.getTime() ?? 0 };
      }
      token = page.NextContinuationToken;
    } while (token !== undefined);
  }

  private async sizeOf(digest: string): Promise<number | undefined> {
    const command = new this.sdk.HeadObjectCommand(this.at(digest));
    try {
      return (await this.client.send(command, this.ask())).ContentLength;
    } catch (error) {
      const translated = s3Error(error, { doing: 'look', digest, bucket: this.bucket });
      if (translated.code === 'blob_missing') return undefined;
      throw translated;
    }
  }

  /** `isNew`: nothing had this name; another writer may have been first by now, with the same bytes. */
  private async write(digest: string, bytes: Uint8Array, isNew: boolean): Promise<void> {
    const command = new this.sdk.PutObjectCommand({
      ...this.at(digest),
      Body: bytes,
      ContentLength: bytes.byteLength,
      ContentType: 'application/octet-stream',
      ...(isNew && this.conditional ? { IfNoneMatch: '*' } : {}),
    });
    try {
      await this.client.send(command, this.move());
    } catch (error) {
      const status = statusOf(error);
      if (status === 412) return;
      // 501: the server does not know conditional writes.
      if (!this.conditional || status !== 501) {
        throw s3Error(error, { doing: 'put', digest, bucket: this.bucket });
      }
      this.conditional = false;
      await this.write(digest, bytes, isNew);
    }
  }

  private at(digest: string): { Bucket: string; Key: string } {
    return { Bucket: this.bucket, Key: `${prefix}${checkDigest(digest)}` };
  }

  private ask(): { abortSignal: AbortSignal } {
    return { abortSignal: AbortSignal.timeout(this.times.askWithinMs) };
  }

  private move(): { abortSignal: AbortSignal } {
    return { abortSignal: AbortSignal.timeout(this.times.moveWithinMs) };
  }
}

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

const ownCodes = new Set(['internal', 'cancelled', 'deadline_exceeded']);

export function s3Error(thrown: unknown, { doing, bucket, digest }: S3Doing): BacktalkError {
  if (thrown instanceof BacktalkError) return thrown;
  const name = nameOf(thrown);
  const status = statusOf(thrown);
  if (refused.has(name) || status === 401 || status === 403) {
    return blobErrors.blobStoreRefused({ bucket, reason: name }, thrown);
  }
  if (status === 404) return blobErrors.blobMissing({ digest: digest ?? bucket }, thrown);
  if (full.has(name) || status === 507) return blobErrors.blobStoreFull({}, thrown);
  if (status !== undefined) return blobErrors.blobStoreFailed({ doing, reason: name }, thrown);
  const translated = asBacktalkError(thrown);
  // No caller may stop a request here: one that ends by itself has waited for an answer that did not come.
  const isOurs = ownCodes.has(translated.code);
  return isOurs ? blobErrors.blobStoreFailed({ doing, reason: name }, thrown) : translated;
}

function nameOf(thrown: unknown): string {
  return thrown instanceof Error ? thrown.name : '';
}

function statusOf(error: unknown): number | undefined {
  const metadata: unknown = typeof error === 'object' && error !== null ? Reflect.get(error, '$metadata') : undefined;
  const status: unknown =
    typeof metadata === 'object' && metadata !== null ? Reflect.get(metadata, 'httpStatusCode') : undefined;
  return typeof status === 'number' ? status : undefined;
}
