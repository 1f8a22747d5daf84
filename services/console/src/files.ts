// The files of the page, as the gateway serves them. In: nothing. Out: each file's path, media type and bytes. It reads
// them once; what browsers run is compiled beside it.
import { readFile } from 'node:fs/promises';

export interface PageFile {
  /** As browsers ask for it. */
  readonly path: string;
  readonly type: string;
  readonly bytes: Buffer;
}

const javascript = 'text/javascript; charset=utf-8';

/** From this file's own folder, `dist`. */
const files = [
  ['/', 'text/html; charset=utf-8', '../page/index.html'],
  ['/console/style.css', 'text/css; charset=utf-8', '../page/style.css'],
  ['/console/main.js', javascript, './main.js'],
  ['/console/endpoint.js', javascript, './endpoint.js'],
  ['/console/items.js', javascript, './items.js'],
  ['/console/lessons.js', javascript, './lessons.js'],
  ['/console/list.js', javascript, './list.js'],
  ['/console/talk.js', javascript, './talk.js'],
  ['/console/versions.js', javascript, './versions.js'],
] as const;

/** Of the compiled page; tests that run from sources name its folder. */
export function pageFiles(folder = new URL('./', import.meta.url)): Promise<PageFile[]> {
  return Promise.all(
    files.map(async ([path, type, file]) => ({ path, type, bytes: await readFile(new URL(file, folder)) })),
  );
}
