import { mkdir, stat } from 'node:fs/promises';
import { dirname } from 'node:path';

/** With all above it. Node's own recursive `mkdir` tries without end where a folder is there and none can be made in it, as in /proc. */
export async function makeFolder(folder: string): Promise<void> {
  try {
    await mkdir(folder);
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? error.code : undefined;
    if (code === 'EEXIST' && (await stat(folder)).isDirectory()) return;
    // Nothing is missing above it.
    if (code !== 'ENOENT' || (await isThere(dirname(folder)))) throw error;
    await makeFolder(dirname(folder));
    // Another may have made it meanwhile.
    await makeFolder(folder);
  }
}

const isThere = (path: string) =>
  stat(path).then(
    () => true,
    () => false,
  );
