import { createHash } from 'node:crypto';
import { statSync, utimesSync, writeFileSync } from 'node:fs';
import { afterAll, describe, expect, it } from 'vitest';
import { TemporaryDirectory } from '../testing/temporary-directory.js';
import { baseFilesIn } from './base-files.js';

const directory = new TemporaryDirectory('base-files');
afterAll(() => directory.remove());

const sha = (text: string) => createHash('sha256').update(text).digest('hex');

describe('the files of a base model', () => {
  it('weights and vocabulary make the digest that a training worker writes into versions', async () => {
    for (const name of ['tokenizer.json', 'model.safetensors', 'config.json'])
      writeFileSync(directory.join(name), name);
    const lines = ['model.safetensors', 'tokenizer.json'].map((name) => `${name} ${sha(name)}\n`);
    expect(await baseFilesIn(directory.path)).toMatchObject({ digest: sha(lines.join('')) });
  });

  it('weights that changed under their name have another digest, though their size is the same', async () => {
    const before = await baseFilesIn(directory.path);
    writeFileSync(directory.join('model.safetensors'), 'MODEL.safetensors');
    utimesSync(directory.join('model.safetensors'), 1_000, 1_000);
    expect((await baseFilesIn(directory.path, before))?.digest).not.toBe(before?.digest);
  });

  it('files that are as they were are not read again', async () => {
    const file = directory.join('model.safetensors');
    const before = await baseFilesIn(directory.path);
    const { atime, mtime } = statSync(file);
    writeFileSync(file, 'model.SAFETENSORS');
    utimesSync(file, atime, mtime);
    expect(await baseFilesIn(directory.path, before)).toEqual(before);
  });

  it('a folder that is gone holds none', async () => {
    expect(await baseFilesIn(directory.join('gone'))).toBeUndefined();
  });
});
