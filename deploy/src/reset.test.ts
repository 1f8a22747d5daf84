import { execFile } from 'node:child_process';
import fs, { existsSync, mkdirSync, readdirSync, writeFileSync } from 'node:fs';
import { syncBuiltinESMExports } from 'node:module';
import { join } from 'node:path';
import { PassThrough } from 'node:stream';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { TemporaryDirectory } from '@backtalk/kit/testing';
import { afterAll, afterEach, expect, it } from 'vitest';
import { openDataFolder } from './data-folder.js';
import { readOptions } from './options.js';
import { resetMachine } from './reset.js';
import { loadSecrets } from './secrets.js';
import { createTerminal } from './terminal.js';

const run = promisify(execFile);
const directory = new TemporaryDirectory('reset');
afterAll(() => {
  directory.remove();
});
afterEach(() => {
  process.exitCode = undefined;
});

const reset = (folder: string, ...flags: readonly string[]) =>
  resetMachine(readOptions(['reset', '--data', folder, ...flags], '/'), createTerminal(new PassThrough().resume()));

it('a reset leaves a folder alone that no start has made, and makes nothing in it', async () => {
  // Names that a data folder has too, and the folder's own.
  for (const names of [['thesis.txt'], ['logs'], ['logs', 'mine']]) {
    const folder = directory.join(`${String(names.length)}${names.join()}`, 'mine');
    mkdirSync(folder, { recursive: true });
    for (const name of names) writeFileSync(join(folder, name), 'mine');
    await expect(reset(folder, '--yes')).rejects.toMatchObject({ code: 'no_data_folder' });
    expect(readdirSync(folder).sort()).toEqual(names);
  }
});

it('a reset takes what a start made that ended before it had secrets', async () => {
  const folder = directory.join('begun');
  openDataFolder(folder);
  writeFileSync(join(folder, 'keys.json'), '{}');
  await reset(folder, '--yes');
  expect(existsSync(folder)).toBe(false);
});

it('a reset leaves what lay in the folder before, and takes all that is Backtalk’s', async () => {
  const folder = directory.join('shared');
  openDataFolder(folder);
  loadSecrets(folder);
  for (const name of ['thesis.txt', 'forgotten-2026.json', 'receipt-key.pem', 'secrets.json.new'])
    writeFileSync(join(folder, name), 'x');
  await reset(folder, '--yes');
  expect(readdirSync(folder)).toEqual(['thesis.txt']);
});

it('a start that takes the folder when a reset lets it go keeps all that it makes there', async () => {
  const folder = directory.join('taken');
  openDataFolder(folder);
  const first = loadSecrets(folder);
  const { unlinkSync } = fs;
  fs.unlinkSync = (path) => {
    unlinkSync(path);
    if (path !== join(folder, 'lock') || existsSync(join(folder, 'secrets.json'))) return;
    openDataFolder(folder);
    loadSecrets(folder);
  };
  syncBuiltinESMExports();
  try {
    await reset(folder, '--yes');
  } finally {
    Object.assign(fs, { unlinkSync });
    syncBuiltinESMExports();
  }
  expect(readdirSync(folder)).toContain('secrets.json');
  expect(loadSecrets(folder)).not.toEqual(first);
});

it('a reset deletes nothing without a word, and then all of it', async () => {
  const folder = directory.join('data');
  openDataFolder(folder);
  loadSecrets(folder);
  await reset(folder);
  expect([existsSync(folder), process.exitCode]).toEqual([true, 1]);
  process.exitCode = undefined;
  await reset(folder, '--yes');
  expect([existsSync(folder), process.exitCode]).toEqual([false, undefined]);
});

it('a reset forgets everything where not one byte can be written, as on a full disk', async () => {
  const folder = directory.join('full');
  openDataFolder(folder);
  loadSecrets(folder);
  const main = fileURLToPath(new URL('../dist/main.js', import.meta.url));
  const withoutRoom = ['-c', 'ulimit -f 0; exec "$0" "$@"', process.execPath, main];
  const { stdout } = await run('sh', [...withoutRoom, 'reset', '--yes', '--data', folder]);
  expect(stdout).toBe('Everything is forgotten: the next start begins from the base model.\n');
  expect(existsSync(folder)).toBe(false);
});
