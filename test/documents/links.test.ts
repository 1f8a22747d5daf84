import { existsSync, readFileSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { repositoryRoot } from '@backtalk/kit/testing';
import { expect, it } from 'vitest';

const root = repositoryRoot();
const documents = readdirSync(root).filter((name) => name.endsWith('.md'));

/** Files and folders that a document names: in links, and as code that looks like a path of a file. */
function namedIn(document: string): string[] {
  const text = readFileSync(join(root, document), 'utf8');
  const links = [...text.matchAll(/\]\(([^)#:]+)(?:#[^)]*)?\)/g)].map(([, path = '']) => path);
  const code = [...text.matchAll(/`((?:services|test|deploy|charts|proto)\/[\w./-]+\.\w+)`/g)].map(
    ([, path = '']) => path,
  );
  return [...links, ...code];
}

it.each(documents)('%s names only files that are there', (document) => {
  const named = namedIn(document);
  expect(named.filter((path) => !existsSync(join(root, path)))).toEqual([]);
});

it('SECURITY.md names a test for every promise', () => {
  const tests = namedIn('SECURITY.md').filter((path) => /\.test\.ts$|\/test_\w+\.py$/.test(path));
  expect(tests.length).toBeGreaterThan(20);
});
