import { existsSync } from 'node:fs';
import { afterAll, expect, it } from 'vitest';
import { TemporaryDirectory } from '../testing/temporary-directory.js';
import { makeFolder } from './make-folder.js';

const directory = new TemporaryDirectory('make-folder');
afterAll(() => directory.remove());

it('several that make the same folder at once all find it made', async () => {
  const folder = directory.join('a/b/c/d');
  await Promise.all(Array.from({ length: 20 }, () => makeFolder(folder)));
  expect(existsSync(folder)).toBe(true);
});
