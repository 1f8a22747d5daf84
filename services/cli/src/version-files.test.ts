import { folderBlobStore, sha256Hex } from '@backtalk/kit';
import { TemporaryDirectory } from '@backtalk/kit/testing';
import { WeightsManifest } from '@backtalk/proto/weights';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { deleteFilesOf, firstLoadable } from './version-files.js';

let directory: TemporaryDirectory;
let blobs: ReturnType<typeof folderBlobStore>;

beforeEach(() => {
  directory = new TemporaryDirectory('version-files');
  blobs = folderBlobStore(directory.path);
});

afterEach(() => {
  directory.remove();
});

const put = (text: string) => blobs.put(Buffer.from(text));

/** With the configuration that every version of a base model has. */
async function version(name: string, weights: string): Promise<string> {
  const file = async (of: string, text: string) => ({ name: of, digest: await put(text), bytes: text.length });
  const adapter = [await file('adapter_model.safetensors', weights), await file('adapter_config.json', '{"r": 8}')];
  const trainingState = [await file('optimizer.safetensors', `state of ${weights}`)];
  return blobs.put(
    WeightsManifest.encode(WeightsManifest.fromPartial({ version: name, adapter, trainingState })).finish(),
  );
}

describe('files of versions', () => {
  it('weights, optimiser’s state and manifest go; the configuration and what other versions name stay', async () => {
    const theirs = await version('p-v2', 'theirs');
    const shared = await version('p-v3', 'shared');
    const other = await version('q-v1', 'shared');
    expect(await deleteFilesOf(blobs, [theirs, shared], [other])).toBe(4);
    const left = await Promise.all(['theirs', 'state of theirs', 'shared', 'state of shared'].map(isThere));
    expect(left).toEqual([false, false, true, true]);
    expect(await isThere('{"r": 8}')).toBe(true);
    expect(await blobs.has(theirs)).toBe(false);
    // A repeat finds nothing more.
    expect(await deleteFilesOf(blobs, [theirs, shared], [other])).toBe(0);
    // Another policy may name the configuration, which no manifest here says.
    expect(await deleteFilesOf(blobs, [other], [])).toBe(3);
    expect(await isThere('{"r": 8}')).toBe(true);
  });

  it('a version whose files were swept cannot answer, and the base always can', async () => {
    const swept = await version('p-v2', 'swept');
    const kept = await version('p-v1', 'kept');
    await blobs.delete(sha256Hex('swept'));
    const versions = [
      { version: 'p-v3', manifest: 'f'.repeat(64) },
      { version: 'p-v2', manifest: swept },
      { version: 'p-v1', manifest: kept },
      { version: 'p-v0', manifest: '' },
    ];
    expect(await firstLoadable(blobs, versions)).toMatchObject({ version: 'p-v1' });
    await blobs.delete(sha256Hex('kept'));
    expect(await firstLoadable(blobs, versions)).toMatchObject({ version: 'p-v0' });
  });
});

const isThere = (text: string) => blobs.has(sha256Hex(text));
