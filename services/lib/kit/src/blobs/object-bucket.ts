// How blobs lie in the broker's object store: one bucket, as the broker's own object clients lay it out, so that its
// command-line tool can read it. A blob's pieces have a subject of their own making; its description has the digest's.
// Pure.
import { z } from 'zod';
import { blobBucket } from '../topology/buckets.js';

/** The broker lets nobody write more than its `max_payload` at once, 1 MB where nobody has raised it. */
export const pieceBytesMax = 256 * 1024;

export const description = z.object({
  name: z.string(),
  bucket: z.string(),
  /** Names the subject of the pieces: new for every try, so that two writers never mix theirs. */
  nuid: z.string(),
  size: z.number().int().min(0),
  chunks: z.number().int().min(0),
  digest: z.string().default(''),
  mtime: z.string().default(''),
  deleted: z.boolean().default(false),
  options: z.object({ max_chunk_size: z.number().int().optional() }).default({}),
});
export type Description = z.infer<typeof description>;

export function descriptionSubject(digest: string): string {
  return `$O.${blobBucket}.M.${base64Url(Buffer.from(digest))}`;
}

export function piecesSubject(nuid: string): string {
  return `$O.${blobBucket}.C.${nuid}`;
}

/** In the form that object clients check: the digest itself, in base64. */
export function describe(digest: string, nuid: string, size: number, nowMs: number): Description {
  return {
    name: digest,
    bucket: blobBucket,
    nuid,
    size,
    chunks: Math.ceil(size / pieceBytesMax),
    digest: `SHA-256=${base64Url(Buffer.from(digest, 'hex'))}`,
    mtime: new Date(nowMs).toISOString(),
    deleted: false,
    options: { max_chunk_size: pieceBytesMax },
  };
}

/** What is left when a blob goes, until it is put again. */
export function deletionOf(gone: Description): Description {
  return { ...gone, size: 0, chunks: 0, digest: '', deleted: true };
}

function base64Url(bytes: Buffer): string {
  return bytes.toString('base64').replaceAll('+', '-').replaceAll('/', '_');
}
