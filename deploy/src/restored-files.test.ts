import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { TemporaryDirectory } from '@backtalk/kit/testing';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { openDataFolder } from './data-folder.js';
import { copyRestored, endRestore, refuseCutOff } from './restored-files.js';
import { loadSecrets } from './secrets.js';

const directory = new TemporaryDirectory('restored-files');
const backup = directory.join('copy');

beforeAll(() => {
  mkdirSync(join(backup, 'files'), { recursive: true });
  openDataFolder(directory.join('old'));
  loadSecrets(directory.join('old'));
  writeFileSync(join(backup, 'files', 'secrets.json'), readFileSync(directory.join('old', 'secrets.json')));
  const manifest = { format: 1, takenAt: '2026-11-29', streams: [], blobs: 0, files: ['secrets.json'] };
  writeFileSync(join(backup, 'manifest.json'), JSON.stringify(manifest));
});
afterAll(() => {
  directory.remove();
});

const isIn = (folder: string) =>
  readFileSync(join(folder, 'secrets.json')).equals(readFileSync(join(backup, 'files', 'secrets.json')));

it('a restore that was cut off is made again from its beginning, whatever of the copy was there', () => {
  const data = openDataFolder(directory.join('new'));
  copyRestored(backup, data);
  for (const folder of [data.nats, data.blobs]) writeFileSync(join(folder, 'part'), '');
  loadSecrets(data.path);
  copyRestored(backup, data);
  expect(isIn(data.path)).toBe(true);
  expect([data.nats, data.blobs].flatMap((folder) => readdirSync(folder))).toEqual([]);
});

it('a start that finds a restore cut off and is told no copy refuses in one line that names it', () => {
  const data = openDataFolder(directory.join('cut'));
  refuseCutOff(data);
  copyRestored(backup, data);
  expect(() => refuseCutOff(data)).toThrow(
    `The restore of ${backup} into ${data.path} was cut off: start again with --restore ${backup}, or empty the folder with npm run reset.`,
  );
  endRestore(data);
  refuseCutOff(data);
});

it('a restore leaves a folder alone that has secrets of its own, or that was restored', () => {
  const own = openDataFolder(directory.join('own'));
  loadSecrets(own.path);
  expect(() => copyRestored(backup, own)).toThrow(/has been used/);
  expect(isIn(own.path)).toBe(false);
  const restored = openDataFolder(directory.join('restored'));
  copyRestored(backup, restored);
  endRestore(restored);
  writeFileSync(join(restored.nats, 'kept'), '');
  expect(() => copyRestored(backup, restored)).toThrow(/has been used/);
  expect(readdirSync(restored.nats)).toEqual(['kept']);
});
