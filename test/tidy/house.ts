// The repository as the rules see it: a set of texts by path. Read from disk for the real house, or made of a few
// lines for the bad examples that prove that each rule bites. It never looks into what is installed or generated.
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import ts from 'typescript';

const ignoredFolders: ReadonlySet<string> = new Set([
  '.backtalk',
  '.git',
  '.turbo',
  '.venv',
  '__pycache__',
  'coverage',
  'dist',
  'gen',
  'node_modules',
]);

const ignoredNames = /\.(egg-info|tsbuildinfo|binpb|png|ico|woff2)$|^\.(pytest|ruff|mypy)_cache$/;

export class House {
  private readonly texts: ReadonlyMap<string, string>;
  private readonly trees = new Map<string, ts.SourceFile>();

  constructor(texts: Readonly<Record<string, string>>) {
    this.texts = new Map(Object.entries(texts));
  }

  static read(root: string): House {
    return new House(
      Object.fromEntries(filesBelow(root, '').map((path) => [path, readFileSync(join(root, path), 'utf8')])),
    );
  }

  /** Paths from the root, with `/` between folders. */
  paths(pattern: RegExp): string[] {
    return [...this.texts.keys()].filter((path) => pattern.test(path));
  }

  text(path: string): string {
    return this.texts.get(path) ?? '';
  }

  has(path: string): boolean {
    return this.texts.has(path);
  }

  lines(path: string): string[] {
    const lines = this.text(path).split('\n');
    return lines.at(-1) === '' ? lines.slice(0, -1) : lines;
  }

  tree(path: string): ts.SourceFile {
    const known = this.trees.get(path);
    if (known !== undefined) return known;
    const tree = ts.createSourceFile(path, this.text(path), ts.ScriptTarget.Latest, true);
    this.trees.set(path, tree);
    return tree;
  }

  /** The five services, the loader, and any other folder that is built like them. */
  get services(): string[] {
    const names = this.paths(/^services\/[^/]+\/src\//).map((path) => path.split('/')[1] ?? '');
    return [...new Set(names)].filter((name) => !builtOtherwise.has(name)).sort();
  }
}

/** Folders of services/ that are no services: libraries, the command line, the page, and Python, which has its own rules. */
const builtOtherwise: ReadonlySet<string> = new Set(['lib', 'cli', 'console', 'worker']);

function filesBelow(root: string, folder: string): string[] {
  return readdirSync(join(root, folder), { withFileTypes: true }).flatMap((entry) => {
    const path = folder === '' ? entry.name : `${folder}/${entry.name}`;
    if (ignoredNames.test(entry.name)) return [];
    if (entry.isDirectory()) return ignoredFolders.has(entry.name) ? [] : filesBelow(root, path);
    return entry.isFile() ? [path] : [];
  });
}
