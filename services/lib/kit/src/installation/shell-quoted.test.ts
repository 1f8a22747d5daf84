import { execFileSync } from 'node:child_process';
import { expect, it } from 'vitest';
import { shellQuoted } from './shell-quoted.js';

it.each(['/srv/my data', "ada's", '$(id)', 'a;b', '', '*', '/srv/data-1', 'ü'])(
  'a shell takes %j for one word',
  (word) => {
    expect(execFileSync('sh', ['-c', `printf %s ${shellQuoted(word)}`], { encoding: 'utf8' })).toBe(word);
  },
);

it('a plain path stays as it is', () => {
  expect(shellQuoted('/srv/data-1')).toBe('/srv/data-1');
});
