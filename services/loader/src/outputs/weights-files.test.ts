import { rename, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { putFakeVersion } from '@backtalk/dialects/testing';
import { folderBlobStore } from '@backtalk/kit';
import { TemporaryDirectory } from '@backtalk/kit/testing';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { WeightsFiles, type WantedVersion } from './weights-files.js';

let directory: TemporaryDirectory;
let wanted: WantedVersion;
let baseModel: string;

beforeEach(async () => {
  directory = new TemporaryDirectory('weights-files');
  const blobs = folderBlobStore(directory.join('blobs'));
  const { manifest, manifestDigest } = await putFakeVersion({ blobs, version: 'backtalk-v1' });
  wanted = { policy: 'backtalk', version: 'backtalk-v1', manifestDigest };
  ({ baseModel } = manifest);
});

afterEach(() => {
  directory.remove();
});

/** As a loader that starts anew has them. */
async function files(): Promise<WeightsFiles> {
  const made = new WeightsFiles(folderBlobStore(directory.join('blobs')), directory.join('adapters'), undefined);
  await made.start();
  return made;
}

it('what is on the disk is not asked of the store again, which may be away', async () => {
  const folder = await (await files()).fetch(wanted, baseModel);
  await rename(directory.join('blobs'), directory.join('away'));
  expect(await (await files()).fetch(wanted, baseModel)).toBe(folder);
});

it.each(['adapter_model.safetensors', 'adapter_config.json', 'manifest'])(
  'a torn %s on the disk is asked of the store again',
  async (name) => {
    const folder = await (await files()).fetch(wanted, baseModel);
    await writeFile(join(folder, name), 'torn');
    await rename(directory.join('blobs'), directory.join('away'));
    await expect((await files()).fetch(wanted, baseModel)).rejects.toMatchObject({ code: 'weights_missing' });
    await rename(directory.join('away'), directory.join('blobs'));
    await (await files()).fetch(wanted, baseModel);
    await rename(directory.join('blobs'), directory.join('away'));
    expect(await (await files()).fetch(wanted, baseModel)).toBe(folder);
  },
);
