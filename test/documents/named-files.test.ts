import { existsSync, readFileSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { repositoryRoot } from '@backtalk/kit/testing';
import { expect, it } from 'vitest';

const root = repositoryRoot();
const documents = readdirSync(root).filter((name) => name.endsWith('.md'));

/** Files that a document names as code; links are a rule of the house. */
function namedIn(document: string): string[] {
  const text = readFileSync(join(root, document), 'utf8');
  return [...text.matchAll(/`((?:services|test|deploy|charts|proto)\/[\w./-]+\.\w+)`/g)].map(([, path = '']) => path);
}

it.each(documents)('%s names only files that are there', (document) => {
  const named = namedIn(document);
  expect(named.filter((path) => !existsSync(join(root, path)))).toEqual([]);
});

const isTest = (path: string) => /\.test\.ts$|\/test_\w+\.py$/.test(path);

it('every promise of SECURITY.md names a test, and each stands there once', () => {
  const [, promises = ''] =
    /## Promises[^\n]*\n([^]*?)\n## /.exec(readFileSync(join(root, 'SECURITY.md'), 'utf8')) ?? [];
  const lines = promises.split('\n').filter((line) => line.startsWith('| ') && !line.startsWith('| ---'));
  const rows = lines.slice(1).map((line) => {
    const [, promise = '', tests = ''] = line.split('|').map((cell) => cell.trim());
    return { promise, tests: [...tests.matchAll(/`([^`]+)`/g)].map(([, path = '']) => path).filter(isTest) };
  });
  expect(rows.length).toBeGreaterThan(25);
  expect(rows.filter(({ tests }) => tests.length === 0).map(({ promise }) => promise)).toEqual([]);
  expect(new Set(rows.map(({ promise }) => promise)).size).toBe(rows.length);
});
