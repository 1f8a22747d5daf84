// How large a machine's data folder is. In: its path. Out: bytes. `npm start` bounds what is counted here, and commands say how near it is.
import { readdirSync, statSync, type Dirent } from 'node:fs';
import { join } from 'node:path';

/** Of the data folder, where models lie that were fetched: they do not grow, and count towards no cap. */
export const modelsFolder = 'models';

/** What counts towards the folder's cap. */
export const cappedBytes = (path: string) => folderBytes(path) - folderBytes(join(path, modelsFolder));

/** Bytes of every file below the folder. */
export function folderBytes(path: string): number {
  let entries: Dirent[];
  try {
    entries = readdirSync(path, { withFileTypes: true });
  } catch (error) {
    // A folder may vanish while it is measured: loaders put versions away.
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return 0;
    throw error;
  }
  let bytes = 0;
  for (const entry of entries) {
    const child = join(path, entry.name);
    if (entry.isDirectory()) bytes += folderBytes(child);
    else bytes += statSync(child, { throwIfNoEntry: false })?.size ?? 0;
  }
  return bytes;
}
