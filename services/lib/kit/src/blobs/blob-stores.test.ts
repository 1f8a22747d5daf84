import { randomBytes } from 'node:crypto';
import { createServer } from 'node:http';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Broker } from '../broker/connect.js';
import { sha256Hex } from '../identity/ids.js';
import { collect } from '../testing/collect.js';
import { freePort } from '../testing/free-port.js';
import { startNats, type TestNats } from '../testing/nats-server.js';
import { hasS3, s3Missing, startS3, type TestS3 } from '../testing/s3-server.js';
import { TemporaryDirectory } from '../testing/temporary-directory.js';
import { blobDescriptions, blobPieces, blobStream } from '../topology/buckets.js';
import type { BlobStore } from './blob-store.js';
import { folderBlobStore } from './folder-blob-store.js';
import { descriptionSubject, dropStrayPieces, openJetStreamBlobStore, pieceBytesMax } from './jetstream-blob-store.js';
import { openBlobStore } from './open-blob-store.js';
import { openS3BlobStore } from './s3-blob-store.js';

const directory = new TemporaryDirectory('blob-stores');
let nats: TestNats;
let s3: TestS3 | undefined;

beforeAll(async () => {
  nats = await startNats();
  if (hasS3()) s3 = await startS3();
});

afterAll(async () => {
  await s3?.stop();
  await nats.stop();
  directory.remove();
});

function s3Options(url: string, bucket: string) {
  return { endpoint: url, bucket, region: 'us-east-1', accessKey: 'test', secretKey: 'test' };
}

const stores: readonly { name: string; isThere: boolean; open: () => Promise<BlobStore> }[] = [
  { name: 'a folder', isThere: true, open: () => Promise.resolve(folderBlobStore(directory.join('contract'))) },
  {
    name: "the broker's object store, as the trainer's user",
    isThere: true,
    open: async () => openJetStreamBlobStore(await nats.connect('trainer')),
  },
  {
    name: hasS3() ? 'S3' : `S3 (${s3Missing()})`,
    isThere: hasS3(),
    open: () => openS3BlobStore(s3Options(s3?.url ?? '', s3?.bucket ?? '')),
  },
];

describe.each(stores)('blobs in $name', ({ isThere, open }) => {
  it.runIf(isThere)('blobs come back by their digest, are counted once, and go', async () => {
    const store = await open();
    const bytes = new TextEncoder().encode('weights');
    const digest = await store.put(bytes);
    expect(digest).toBe(sha256Hex(bytes));
    expect(await store.put(bytes)).toBe(digest);
    expect(Buffer.from(await store.get(digest)).toString()).toBe('weights');
    expect(await store.has(digest)).toBe(true);
    const [info, ...others] = await collect(store.list());
    expect(others).toEqual([]);
    expect(info).toMatchObject({ digest, bytes: bytes.byteLength });
    expect(Math.abs((info?.modifiedMs ?? 0) - Date.now())).toBeLessThan(60_000);
    await store.delete(digest);
    await store.delete(digest);
    expect(await store.has(digest)).toBe(false);
    expect(await collect(store.list())).toEqual([]);
    await expect(store.get(digest)).rejects.toMatchObject({ code: 'blob_missing', retry: 'later' });
    await store.put(bytes);
    expect(await store.has(digest)).toBe(true);
    await store.delete(digest);
  });

  it.runIf(isThere)('blobs are whole at the size of an optimiser state, and when empty', async () => {
    const store = await open();
    const large = randomBytes(20 * 1024 * 1024 + 1);
    const digest = await store.put(large);
    expect(large.equals(await store.get(digest))).toBe(true);
    const empty = await store.put(new Uint8Array());
    expect((await store.get(empty)).byteLength).toBe(0);
    await Promise.all([store.delete(digest), store.delete(empty)]);
  });

  it.runIf(isThere)('one blob is stored when many writers put the same at once', async () => {
    const store = await open();
    const bytes = randomBytes(pieceBytesMax + 10);
    const digests = await Promise.all(Array.from({ length: 5 }, () => store.put(bytes)));
    expect(new Set(digests)).toEqual(new Set([sha256Hex(bytes)]));
    expect(bytes.equals(await store.get(digests[0] ?? ''))).toBe(true);
    expect(await collect(store.list())).toHaveLength(1);
    await store.delete(digests[0] ?? '');
  });

  it.runIf(isThere)('blobs are named by digests and nothing else', async () => {
    const store = await open();
    for (const name of ['../../etc/passwd', '', 'A'.repeat(64)]) {
      await expect(store.get(name)).rejects.toMatchObject({ code: 'blob_digest_invalid' });
    }
  });
});

describe('the object store', () => {
  it('the object store is laid out so that the broker’s own object client reads it', async () => {
    const store = await openJetStreamBlobStore(await nats.connect('trainer'));
    const bytes = randomBytes(pieceBytesMax * 2 + 5);
    const digest = await store.put(bytes);
    const admin = await nats.connect('admin');
    const bucket = await admin.js.views.os('blobs');
    expect(bytes.equals((await bucket.getBlob(digest)) ?? new Uint8Array())).toBe(true);
    await bucket.putBlob({ name: 'of another client' }, bytes);
    expect((await collect(store.list())).map((blob) => blob.digest)).toEqual([digest]);
    await bucket.delete('of another client');
    await store.delete(digest);
    expect(await bucket.getBlob(digest)).toBeNull();
    const { state } = await admin.jsm.streams.info(blobStream, { subjects_filter: blobPieces });
    expect(state.subjects ?? {}).toEqual({});
  });

  it('what is left of a deleted blob goes with stray pieces, once it is old and unless the blob was put anew', async () => {
    const own = await startNats();
    const [store, admin] = [await openJetStreamBlobStore(await own.connect('trainer')), await own.connect('admin')];
    const descriptions = async () => {
      const { state } = await admin.jsm.streams.info(blobStream, { subjects_filter: blobDescriptions });
      return Object.keys(state.subjects ?? {}).length;
    };
    const [kept, deleted, again] = [new Uint8Array([1]), new Uint8Array([2]), new Uint8Array([3])];
    for (const bytes of [kept, deleted, again]) await store.put(bytes);
    for (const bytes of [deleted, again]) await store.delete(sha256Hex(bytes));
    await store.put(again);
    await dropStrayPieces(admin, Date.now());
    expect(await descriptions()).toBe(3);
    await dropStrayPieces(admin, Date.now() + 2 * 3_600_000);
    expect(await descriptions()).toBe(2);
    for (const bytes of [kept, again]) expect(await store.get(sha256Hex(bytes))).toEqual(Buffer.from(bytes));
    await own.stop();
  });

  it('never gives out bytes that have changed, says when pieces are gone, and is mended by another put', async () => {
    const store = await openJetStreamBlobStore(await nats.connect('trainer'));
    const admin = await nats.connect('admin');
    const bytes = randomBytes(100);
    const digest = await store.put(bytes);
    await changeDescription(admin, digest, (nuid) => ({ nuid, size: 5 }));
    await expect(store.get(digest)).rejects.toMatchObject({ code: 'blob_corrupt', retry: 'never' });
    // As a copy that lags behind gives less than the stream's leader has.
    await changeDescription(admin, digest, (nuid) => ({ nuid, size: 150 }));
    await expect(store.get(digest)).rejects.toMatchObject({ code: 'blob_store_failed', retry: 'later', status: 503 });
    await changeDescription(admin, digest, () => ({ nuid: 'gone', size: 100 }));
    await expect(store.get(digest)).rejects.toMatchObject({ code: 'blob_corrupt' });
    await store.put(bytes);
    expect(bytes.equals(await store.get(digest))).toBe(true);
  });

  it('lets the loader read, and neither write nor delete', async () => {
    const writer = await openJetStreamBlobStore(await nats.connect('gateway'));
    const reader = await openJetStreamBlobStore(await nats.connect('loader'), { askWithinMs: 10_000 });
    const digest = await writer.put(new Uint8Array([1, 2, 3]));
    expect([...(await reader.get(digest))]).toEqual([1, 2, 3]);
    await expect(reader.put(new Uint8Array([4]))).rejects.toMatchObject({ code: 'broker_forbidden' });
    await expect(reader.delete(digest)).rejects.toMatchObject({ code: 'broker_forbidden' });
    expect(await reader.has(digest)).toBe(true);
  });

  it('fails at once, to be tried later, while the broker is away; what was put is there when it is back', async () => {
    const store = await openJetStreamBlobStore(await nats.connect('trainer'));
    const digest = await store.put(new Uint8Array([9]));
    await nats.kill();
    await expect(store.put(new Uint8Array([8]))).rejects.toMatchObject({ retry: 'later' });
    await expect(store.get(digest)).rejects.toMatchObject({ retry: 'later' });
    await nats.restart();
    expect([...(await store.get(digest))]).toEqual([9]);
  });
});

describe('the setting', () => {
  const s3None = { s3Endpoint: '', s3Bucket: '', s3Region: 'us-east-1', s3AccessKey: '', s3SecretKey: '' };

  it('a setting of s3 without a bucket stops the start', async () => {
    const opening = openBlobStore({ blobStore: { kind: 's3' }, ...s3None }, await nats.connect('trainer'));
    await expect(opening).rejects.toMatchObject({ code: 'blob_bucket_unnamed', retry: 'stop' });
  });

  it.each([
    ['an endpoint without http://', { s3Endpoint: 's3.local:9000' }, 'BACKTALK_S3_ENDPOINT'],
    ['an access key alone', { s3AccessKey: 'a' }, 'BACKTALK_S3_SECRET_KEY'],
    ['a secret key alone', { s3SecretKey: 's' }, 'BACKTALK_S3_ACCESS_KEY'],
  ])('a setting of s3 with %s stops the start', async (_what, given, named) => {
    const config = { blobStore: { kind: 's3' }, ...s3None, s3Bucket: 'b', ...given } as const;
    const error: unknown = await openBlobStore(config, await nats.connect('trainer')).catch(
      (thrown: unknown) => thrown,
    );
    expect(error).toMatchObject({ code: 'blob_settings_invalid', retry: 'stop' });
    expect(String(error)).toContain(named);
  });

  it('a setting of jetstream without the bucket stops the start', async () => {
    const bare = await startNats({ streams: false });
    const opening = openBlobStore({ blobStore: { kind: 'jetstream' }, ...s3None }, await bare.connect('trainer'));
    await expect(opening).rejects.toMatchObject({ code: 'stream_missing', retry: 'stop' });
    await bare.stop();
  });
});

describe('S3', () => {
  it('the error of an S3 that is away is one that passes', async () => {
    const store = await openS3BlobStore(s3Options(`http://127.0.0.1:${await freePort()}`, 'weights'));
    await expect(store.put(new Uint8Array([1]))).rejects.toMatchObject({ retry: 'later' });
  });

  it('a server that refuses the bucket stops the start', async () => {
    const server = createServer((_request, response) => {
      response.writeHead(403, { 'content-type': 'application/xml' });
      response.end('<Error><Code>AccessDenied</Code></Error>');
    });
    const port = await freePort();
    await new Promise<void>((resolve) => server.listen(port, '127.0.0.1', resolve));
    const opening = openS3BlobStore(s3Options(`http://127.0.0.1:${port}`, 'weights'));
    await expect(opening).rejects.toMatchObject({ code: 'blob_bucket_refused', retry: 'stop' });
    server.close();
  });

  it.runIf(hasS3())(
    `a missing bucket stops the start with the settings to check${hasS3() ? '' : ` (${s3Missing()})`}`,
    async () => {
      const opening = openS3BlobStore(s3Options(s3?.url ?? '', 'absent'));
      await expect(opening).rejects.toMatchObject({ code: 'blob_bucket_refused', retry: 'stop' });
    },
  );
});

async function changeDescription(admin: Broker, digest: string, change: (nuid: string) => object): Promise<void> {
  const subject = descriptionSubject(digest);
  const stored = await admin.jsm.streams.getMessage(blobStream, { last_by_subj: subject });
  const before: { nuid: string } = stored.json();
  await admin.js.publish(subject, JSON.stringify({ ...before, ...change(before.nuid) }));
}
