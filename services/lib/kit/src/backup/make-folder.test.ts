import { existsSync, mkdirSync } from 'node:fs';
import { mkdir } from 'node:fs/promises';
import { dirname } from 'node:path';
import { afterAll, expect, it, vi } from 'vitest';
import { TemporaryDirectory } from '../testing/temporary-directory.js';
import { makeFolder } from './make-folder.js';

vi.mock('node:fs/promises', { spy: true });

const directory = new TemporaryDirectory('make-folder');
afterAll(() => directory.remove());

it('several that make the same folder at once all find it made', async () => {
  const folder = directory.join('a/b/c/d');
  await Promise.all(Array.from({ length: 20 }, () => makeFolder(folder)));
  expect(existsSync(folder)).toBe(true);
});

it('a folder is made where another makes what is above it right after it was missing', async () => {
  const folder = directory.join('e/f');
  const { mkdir: really } = await vi.importActual<{ mkdir: typeof mkdir }>('node:fs/promises');
  vi.mocked(mkdir).mockImplementationOnce((path, options) =>
    really(path, options).finally(() => mkdirSync(dirname(folder))),
  );
  await makeFolder(folder);
  expect(existsSync(folder)).toBe(true);
});

it.skipIf(!existsSync('/proc'))('a folder that cannot be made where all above it is there is refused', async () => {
  await expect(makeFolder('/proc/none')).rejects.toMatchObject({ code: 'ENOENT' });
});
