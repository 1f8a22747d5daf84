// Links between documents lead to files and headings that are there.
import { posix } from 'node:path';
import GithubSlugger from 'github-slugger';
import type { House } from './house.js';
import type { Rule } from './rule.js';

const document = /\.md$/;
const fence = /^```[^]+?^```/gm;
const link = /\]\(([^)#:\s]*)(?:#([^)\s]+))?\)/g;

/** Pictures and other files that hold no text are not in the house: their names are believed. */
const noText = /\.(png|ico)$/;

function anchorsOf(text: string): Set<string> {
  const slugger = new GithubSlugger();
  return new Set([...text.replace(fence, '').matchAll(/^#+ (.+)$/gm)].map(([, title = '']) => slugger.slug(title)));
}

function isThere(house: House, path: string): boolean {
  return house.has(path) || noText.test(path) || house.paths(/./).some((file) => file.startsWith(`${path}/`));
}

function deadLinks(house: House, from: string): string[] {
  const text = house.text(from).replace(fence, '');
  return [...text.matchAll(link)].flatMap(([, path = '', anchor]) => {
    const to = path === '' ? from : posix.join(posix.dirname(from), path);
    if (!isThere(house, to)) return [`${from} links to ${to}, which is not there.`];
    if (anchor === undefined || !document.test(to) || anchorsOf(house.text(to)).has(anchor)) return [];
    return [`${from} links to ${to}#${anchor}, and no heading there is called so.`];
  });
}

export const linkRules: readonly Rule[] = [
  {
    name: 'every link of a document leads to a file and a heading that are there',
    broken: { 'README.md': '[gone](docs/gone.md) [moved](#moved)\n' },
    check: (house) => house.paths(document).flatMap((path) => deadLinks(house, path)),
  },
];
