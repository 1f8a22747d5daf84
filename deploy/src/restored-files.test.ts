import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { TemporaryDirectory } from '@backtalk/kit/testing';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { openDataFolder } from './data-folder.js';
import { copyRestored } from './restored-files.js';
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

it('a restore that ended before anything was stored may be made again', () => {
  const data = openDataFolder(directory.join('new'));
  copyRestored(backup, data);
  copyRestored(backup, data);
  expect(isIn(data.path)).toBe(true);
});

it('a restore leaves a folder alone that has secrets of its own, or in which something is stored', () => {
  const own = openDataFolder(directory.join('own'));
  loadSecrets(own.path);
  expect(() => copyRestored(backup, own)).toThrow(/has been used/);
  expect(isIn(own.path)).toBe(false);
  const stored = openDataFolder(directory.join('stored'));
  copyRestored(backup, stored);
  writeFileSync(join(stored.nats, 'a'), '');
  expect(() => copyRestored(backup, stored)).toThrow(/has been used/);
});
