import { readdirSync, utimesSync, writeFileSync } from 'node:fs';
import { afterAll, describe, expect, it } from 'vitest';
import { sha256Hex } from '../identity/ids.js';
import { collect } from '../testing/collect.js';
import { TemporaryDirectory } from '../testing/temporary-directory.js';
import { dropStrayFiles, folderBlobStore } from './folder-blob-store.js';

const directory = new TemporaryDirectory('blobs');
afterAll(() => {
  directory.remove();
});

const bytes = new TextEncoder().encode('weights');

describe('a folder of blobs', () => {
  it('gives back what was put, by its digest, and lists it once', async () => {
    const store = folderBlobStore(directory.join('plain'));
    const digest = await store.put(bytes);
    expect(digest).toBe(sha256Hex(bytes));
    expect(Buffer.from(await store.get(digest))).toEqual(Buffer.from(bytes));
    await store.put(bytes);
    writeFileSync(directory.join('plain', digest.slice(0, 2), '.DS_Store'), 'not ours');
    const infos = await collect(store.list());
    expect(infos).toMatchObject([{ digest, bytes: bytes.byteLength }]);
    await store.delete(digest);
    await store.delete(digest);
    expect(await store.has(digest)).toBe(false);
    await expect(store.get(digest)).rejects.toMatchObject({ code: 'blob_missing', retry: 'later' });
  });

  it('never gives out bytes that have changed, and mends a torn file when they are put again', async () => {
    const store = folderBlobStore(directory.join('corrupt'));
    const digest = await store.put(bytes);
    const path = directory.join('corrupt', digest.slice(0, 2), digest);
    writeFileSync(path, 'weightz');
    await expect(store.get(digest)).rejects.toMatchObject({ code: 'blob_corrupt', retry: 'never' });
    await store.put(bytes);
    expect(Buffer.from(await store.get(digest)).toString()).toBe('weights');
    writeFileSync(path, 'wei');
    await store.put(bytes);
    expect(Buffer.from(await store.get(digest)).toString()).toBe('weights');
  });

  it('takes the same blob from many writers at once and leaves nothing beside it', async () => {
    const store = folderBlobStore(directory.join('race'));
    const digests = await Promise.all(Array.from({ length: 20 }, () => store.put(bytes)));
    expect(new Set(digests).size).toBe(1);
    expect(readdirSync(directory.join('race', 'incoming'))).toEqual([]);
  });

  it('drops what a process that died had written in part, and no file that is being written', async () => {
    const store = folderBlobStore(directory.join('strays'));
    const digest = await store.put(bytes);
    const stray = (name: string) => directory.join('strays', 'incoming', name);
    for (const name of ['old', 'new']) writeFileSync(stray(name), 'wei');
    const nowMs = Date.now();
    utimesSync(stray('old'), 0, nowMs / 1_000 - 3_601);
    expect(await dropStrayFiles(directory.join('strays'), nowMs)).toBe(1);
    expect(readdirSync(directory.join('strays', 'incoming'))).toEqual(['new']);
    expect(await store.has(digest)).toBe(true);
    expect(await dropStrayFiles(directory.join('none'), nowMs)).toBe(0);
  });

  it('refuses names that are no digests', async () => {
    const store = folderBlobStore(directory.join('names'));
    await expect(store.get('../../etc/passwd')).rejects.toMatchObject({ code: 'blob_digest_invalid' });
  });
});
