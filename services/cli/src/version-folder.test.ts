import { mkdirSync, readdirSync, writeFileSync } from 'node:fs';
import { TemporaryDirectory } from '@backtalk/kit/testing';
import { expect, it } from 'vitest';
import { removeHalfWritten } from './version-folder.js';

it('what a follower left half written goes, and nothing that is somebody else’s', async () => {
  const folder = new TemporaryDirectory('half-written');
  const id = '0f8fad5b-d9cb-469f-a165-70867728950e';
  for (const name of [`ada-v1.${id}.part`, `ada-v2.${id}.part.adapter`, 'weights.part1', 'ada-v3'])
    mkdirSync(folder.join(name));
  for (const name of [`latest.${id}.part`, 'film.mp4.part']) writeFileSync(folder.join(name), '');
  await removeHalfWritten(folder.path);
  expect(readdirSync(folder.path).sort()).toEqual(['ada-v3', 'film.mp4.part', 'weights.part1']);
  folder.remove();
});
