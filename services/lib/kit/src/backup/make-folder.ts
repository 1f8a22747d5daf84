import { mkdir, stat } from 'node:fs/promises';
import { dirname } from 'node:path';

/** With all above it. Node's own recursive `mkdir` tries without end where a folder is there and none can be made in it, as in /proc. */
export function makeFolder(folder: string): Promise<void> {
  return make(folder, false);
}

async function make(folder: string, above: boolean): Promise<void> {
  try {
    await mkdir(folder);
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? error.code : undefined;
    if (code === 'EEXIST' && (await stat(folder)).isDirectory()) return;
    // Nothing is missing above it.
    if (code !== 'ENOENT' || above) throw error;
    // Another may make what is above it, and it, meanwhile.
    if (!(await isThere(dirname(folder)))) await make(dirname(folder), false);
    await make(folder, true);
  }
}

const isThere = (path: string) =>
  stat(path).then(
    () => true,
    () => false,
  );
