import { mkdirSync, readFileSync } from 'node:fs';
import { expect, it } from 'vitest';
import { exitStatusOf, pathRefusal } from './errors.js';

function thrownBy(work: () => unknown): unknown {
  try {
    return work();
  } catch (error) {
    return error;
  }
}

it('what the file system refuses is said of the path, as wrong use', () => {
  const missing = pathRefusal(thrownBy(() => readFileSync('/nowhere/at/all')));
  expect(missing).toMatchObject({ code: 'path_refused', message: '/nowhere/at/all is not there.' });
  expect(exitStatusOf('path_refused')).toBe(2);
});

it('a folder that cannot be made is refused in one line, and another is asked for', () => {
  const words = ['/proc/x', '/etc/hosts'].map((path) => pathRefusal(thrownBy(() => mkdirSync(path)))?.message);
  expect(words).toEqual([
    '/proc/x cannot be made, for its place holds no new folders: name another.',
    '/etc/hosts is a file, where a folder is needed: name another.',
  ]);
});

it('an error of anything else is no refusal of a path', () => {
  expect(pathRefusal(new RangeError('ENOENT'))).toBeUndefined();
  expect(pathRefusal('ENOENT')).toBeUndefined();
});
