// A blob store in the broker's object store: replicated with the log, and no volume that many pods must share.
// A blob appears whole or not at all: its pieces are stored first, then one description that names them. Of two writers
// one wins, and what the other stored is removed again. What is read is hashed again. Every call has a deadline.
// The bucket is laid out as the library's object client does, which reads it. That client itself was tried (nats 2.29.3): it
// needs STREAM.MSG.GET on the whole stream, which no service has ("as the trainer's user" in blob-stores.test.ts); a read
// whose pieces are gone never ends ("says when pieces are gone"); a store that is full is a permission error for those who
// may not purge; and 20 MB take 1.6 s to read where they take 0.3 s here, because it hashes in JavaScript.
import { headers as natsHeaders } from 'nats';
import { z } from 'zod';
import type { Broker } from '../broker/connect.js';
import { lastOfSubject } from '../broker/last-of-subject.js';
import { readStream } from '../broker/read-stream.js';
import { type NewMessage, storeMessage } from '../broker/store-message.js';
import { checkStreams } from '../broker/streams.js';
import { brokerError } from '../broker/translate.js';
import { asBacktalkError, isBacktalkError } from '../errors/backtalk-error.js';
import { newId, sha256Hex } from '../identity/ids.js';
import { systemClock } from '../time/clock.js';
import { blobBucket, blobDescriptions, blobPieces, blobStream } from '../topology/buckets.js';
import { blobErrors, type BlobInfo, type BlobStore, checkDigest, isDigest, isSound } from './blob-store.js';

interface JetStreamBlobOptions {
  /** Of one request to the broker. */
  readonly askWithinMs?: number;
  /** Of one read of a whole blob. */
  readonly readWithinMs?: number;
}

/** Pieces on their way at once: they bound what waits in memory. */
const piecesInFlight = 8;
/** Another writer renews or deletes the same blob at the same moment: it is looked at again, so often. */
const looksMax = 5;

/** Throws `stream_missing` where the bucket has not been made. */
export async function openJetStreamBlobStore(broker: Broker, options: JetStreamBlobOptions = {}): Promise<BlobStore> {
  await checkStreams(broker, [blobStream]);
  return new JetStreamBlobStore(broker, options.askWithinMs ?? 5_000, options.readWithinMs ?? 60_000);
}

interface Found {
  readonly description: Description;
  readonly sequence: number;
}

class JetStreamBlobStore implements BlobStore {
  constructor(
    private readonly broker: Broker,
    private readonly askWithinMs: number,
    private readonly readWithinMs: number,
  ) {}

  async put(bytes: Uint8Array): Promise<string> {
    const digest = sha256Hex(bytes);
    for (let look = 0; look < looksMax; look += 1) {
      const found = await this.find(digest);
      const isWhole = found !== undefined && !found.description.deleted && found.description.size === bytes.byteLength;
      const isThere = isWhole && (await isSound(this, digest));
      const nuid = isThere ? found.description.nuid : await this.storePieces(bytes);
      const next: Description = {
        name: digest,
        bucket: blobBucket,
        nuid,
        size: bytes.byteLength,
        chunks: Math.ceil(bytes.byteLength / pieceBytesMax),
        // In the form that object clients check: the digest itself, in base64.
        digest: `SHA-256=${base64Url(Buffer.from(digest, 'hex'))}`,
        mtime: new Date(systemClock.now()).toISOString(),
        deleted: false,
        options: { max_chunk_size: pieceBytesMax },
      };
      if (await this.describe(next, found?.sequence ?? 0)) return digest;
      if (!isThere) await this.dropPieces(nuid);
    }
    throw blobErrors.blobStoreFailed({ doing: 'put', reason: 'others write the same blob all the time' });
  }

  async get(digest: string): Promise<Uint8Array> {
    for (let look = 0; look < looksMax; look += 1) {
      const found = await this.find(digest);
      if (found === undefined || found.description.deleted) throw blobErrors.blobMissing({ digest });
      const bytes = await this.readPieces(found.description);
      if (bytes.byteLength === found.description.size) {
        if (sha256Hex(bytes) !== digest) throw blobErrors.blobCorrupt({ digest });
        return bytes;
      }
      // It was deleted and put again while it was read, its pieces are really gone, or the copy that gave them lags behind.
      if ((await this.find(digest))?.sequence !== found.sequence) continue;
      const { size, chunks } = found.description;
      const isShort = bytes.byteLength < size && (await this.piecesOf(found.description)) >= chunks;
      if (!isShort) throw blobErrors.blobCorrupt({ digest });
      throw blobErrors.blobStoreFailed({ doing: 'get', reason: 'a copy lags behind' });
    }
    throw blobErrors.blobMissing({ digest });
  }

  async has(digest: string): Promise<boolean> {
    return (await this.find(digest))?.description.deleted === false;
  }

  async delete(digest: string): Promise<void> {
    const found = await this.find(digest);
    if (found === undefined || found.description.deleted) return;
    const deletion = { ...found.description, size: 0, chunks: 0, digest: '', deleted: true };
    // Refused: it was put again in the meantime, and it stays.
    if (!(await this.describe(deletion, found.sequence))) return;
    await this.dropPieces(found.description.nuid);
  }

  async *list(): AsyncIterable<BlobInfo> {
    const reading = { broker: this.broker, stream: blobStream, filter: blobDescriptions };
    for await (const { data, timeMs } of readStream(reading)) {
      const { name: digest, size: bytes, deleted } = read(data);
      if (!deleted && isDigest(digest)) yield { digest, bytes, modifiedMs: timeMs };
    }
  }

  private async find(digest: string): Promise<Found | undefined> {
    const subject = descriptionSubject(checkDigest(digest));
    const stored = await lastOfSubject(this.broker, blobStream, subject, this.askWithinMs);
    return stored === undefined ? undefined : { description: read(stored.data), sequence: stored.sequence };
  }

  /** False when the description is not the one that was looked at. */
  private async describe(next: Description, expectLast: number): Promise<boolean> {
    const headers = natsHeaders();
    headers.set('Nats-Rollup', 'sub');
    const data = new TextEncoder().encode(JSON.stringify(next));
    const stored = await this.store({ subject: descriptionSubject(next.name), data, headers, expectLast });
    return !stored.refused;
  }

  private async storePieces(bytes: Uint8Array): Promise<string> {
    const nuid = newId();
    try {
      for (let from = 0; from < bytes.byteLength; from += piecesInFlight * pieceBytesMax) {
        const group = bytes.subarray(from, from + piecesInFlight * pieceBytesMax);
        const count = Math.ceil(group.byteLength / pieceBytesMax);
        const pieces = Array.from({ length: count }, (_, at) =>
          group.subarray(at * pieceBytesMax, (at + 1) * pieceBytesMax),
        );
        await Promise.all(pieces.map((data) => this.store({ subject: piecesSubject(nuid), data })));
      }
    } catch (error) {
      await this.dropPieces(nuid);
      throw error;
    }
    return nuid;
  }

  private async store(message: Pick<NewMessage, 'subject' | 'data' | 'headers' | 'expectLast'>) {
    try {
      const shared = { stream: blobStream, timeoutMs: this.askWithinMs, doing: 'put a blob' };
      return await storeMessage(this.broker, { ...message, ...shared });
    } catch (error) {
      throw isBacktalkError(error, 'stream_full') ? blobErrors.blobStoreFull({}, error) : asBacktalkError(error);
    }
  }

  private async readPieces({ nuid, size }: Description): Promise<Uint8Array> {
    const signal = AbortSignal.timeout(this.readWithinMs);
    const reading = { broker: this.broker, stream: blobStream, filter: piecesSubject(nuid), signal };
    const pieces: Uint8Array[] = [];
    let bytes = 0;
    try {
      for await (const { data } of readStream(reading)) {
        pieces.push(data);
        bytes += data.byteLength;
        if (bytes >= size) break;
      }
    } catch (error) {
      const given = asBacktalkError(error);
      if (!signal.aborted) throw given;
      throw blobErrors.blobStoreFailed({ doing: 'get', reason: 'it took too long' }, error);
    }
    return Buffer.concat(pieces);
  }

  /** How many there are, as the stream's leader knows, which is where they are first. */
  private async piecesOf({ nuid }: Description): Promise<number> {
    const subject = piecesSubject(nuid);
    const { state } = await infoOf(this.broker, subject, 'get a blob');
    return state.subjects?.[subject] ?? 0;
  }

  /** Services that may not purge leave the pieces to the sweep: they are named by nothing. */
  private async dropPieces(nuid: string): Promise<void> {
    try {
      await this.broker.jsm.streams.purge(blobStream, { filter: piecesSubject(nuid) });
    } catch (error) {
      const { code } = brokerError(error, { doing: 'drop pieces of a blob', stream: blobStream });
      this.broker.logger.debug('blob_pieces_left', { code });
    }
  }
}

function read(data: Uint8Array): Description {
  const json: unknown = JSON.parse(new TextDecoder().decode(data));
  return description.parse(json);
}

/** Below the broker's `max_payload`, which is 1 MB unless it was raised. */
export const pieceBytesMax = 256 * 1024;

const description = z.object({
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
type Description = z.infer<typeof description>;

export function descriptionSubject(digest: string): string {
  return `$O.${blobBucket}.M.${base64Url(Buffer.from(digest))}`;
}

function piecesSubject(nuid: string): string {
  return `$O.${blobBucket}.C.${nuid}`;
}

function base64Url(bytes: Buffer): string {
  return bytes.toString('base64').replaceAll('+', '-').replaceAll('/', '_');
}

/** From the stream's leader. */
async function infoOf(broker: Broker, subjects: string, doing: string) {
  return broker.jsm.streams.info(blobStream, { subjects_filter: subjects }).catch((error: unknown) => {
    throw brokerError(error, { doing, stream: blobStream });
  });
}

const graceMs = 60 * 60 * 1000;

/**
 * Drops pieces that a writer left when it died: named by no description. And descriptions of blobs that were deleted. For the admin
 * user. Young ones are spared, because a writer may be about to name or to put them.
 * @returns of how many writers
 */
export async function dropStrayPieces(broker: Broker, nowMs: number): Promise<number> {
  const doing = 'look for stray pieces';
  const described = await infoOf(broker, blobDescriptions, doing);
  const named = new Set<string>();
  let descriptions = 0;
  const gone: { readonly filter: string; readonly seq: number }[] = [];
  for await (const found of readStream({ broker, stream: blobStream, filter: blobDescriptions })) {
    descriptions += 1;
    const { nuid, deleted } = read(found.data);
    if (!deleted) named.add(nuid);
    // Up to this one: what is put anew meanwhile has a later one.
    else if (nowMs - found.timeMs > graceMs) gone.push({ filter: found.subject, seq: found.sequence + 1 });
  }
  for (const deletion of gone) await broker.jsm.streams.purge(blobStream, deletion);
  // They came from a copy that lags behind: pieces whose description it lacks would be taken for stray.
  if (descriptions < Object.keys(described.state.subjects ?? {}).length) return 0;
  const { state } = await infoOf(broker, blobPieces, doing);
  const prefix = piecesSubject('');
  const nuids = Object.keys(state.subjects ?? {}).map((subject) => subject.slice(prefix.length));
  const strays = nuids.filter((nuid) => {
    // Ids begin with the time of their making, in milliseconds. Other clients' names are as old as can be: never spared.
    const madeAtMs = /^[0-9a-f]{32}$/.test(nuid) ? Number.parseInt(nuid.slice(0, 12), 16) : 0;
    return !named.has(nuid) && nowMs - madeAtMs > graceMs;
  });
  for (const nuid of strays) await broker.jsm.streams.purge(blobStream, { filter: piecesSubject(nuid) });
  return strays.length;
}
