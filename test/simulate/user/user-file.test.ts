import { mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { repositoryRoot } from '@backtalk/kit/testing';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { violates } from './rule.js';
import { readUser } from './user-file.js';

const valid = {
  wish: 'Answer in capitals.',
  rule: { violates_if: [{ op: 'matches', pattern: '[a-z]' }] },
  corrections: ['CAPITALS PLEASE'],
  satisfied: ['thanks'],
  questions: { train: ['Why?'], heldout: ['How?', 'When?'] },
};
let folder = '';
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'backtalk-users-'));
});
afterAll(() => {
  rmSync(folder, { recursive: true });
});

function written(contents: unknown): string {
  const path = join(folder, 'user.json');
  writeFileSync(path, typeof contents === 'string' ? contents : JSON.stringify(contents));
  return path;
}

describe('readUser', () => {
  it('reads each user of the tree, with held-out questions in whole blocks of 32', () => {
    const names = readdirSync(join(repositoryRoot(), 'test', 'simulate', 'users')).map(
      (name) => name.split('.')[0] ?? '',
    );
    for (const name of names) {
      const { questions } = readUser(name);
      expect(new Set(questions.heldout).size % 32, name).toBe(0);
    }
    expect(names).toContain('short');
  });

  it('reads a file by its path', () => {
    expect(readUser(written(valid))).toMatchObject({ wish: 'Answer in capitals.', follow_ups: [], complaints: [] });
  });

  it.each([
    ['{', /user\.json cannot be simulated: it is not JSON/],
    [{ ...valid, rule: { violates_if: [{ op: 'sings' }] } }, /rule\.violates_if\.0/],
    [{ ...valid, rule: { violates_if: [{ op: 'matches', pattern: '(' }] } }, /violates_if\.0\.pattern/],
    [{ ...valid, rule: { violates_if: [{ op: 'words_over', max: 0 }] } }, /violates_if\.0\.max/],
    [{ ...valid, corrections: [] }, /corrections/],
    [{ ...valid, colour: 'red' }, /colour/],
    [{ ...valid, questions: { train: ['How?'], heldout: ['how?', 'When?'] } }, /"How\?" stands in both/],
  ])('refuses a file that cannot be used, by what is wrong with it (%#)', (contents, words) => {
    expect(() => readUser(written(contents))).toThrow(words);
  });

  it('refuses a name that is no file', () => {
    expect(() => readUser('rumpelstiltskin')).toThrow(/there is no file to read/);
  });
});

describe('violates', () => {
  const rule = (violation: Parameters<typeof violates>[0]['violates_if'][number]) => ({ violates_if: [violation] });
  it.each([
    [{ op: 'matches', pattern: '[A-Z]', flags: '' } as const, ' no capitals here ', false],
    [{ op: 'matches', pattern: '[a-z]', flags: 'i' } as const, 'ALL', true],
    [{ op: 'not_matches', pattern: String.raw`\?$`, flags: '' } as const, 'And you?\n', false],
    [{ op: 'words_over', max: 2 } as const, 'one two three', true],
    [{ op: 'words_under', min: 3 } as const, 'one two three', false],
  ])('decides %o of %j', (violation, text, expected) => {
    expect(violates(rule(violation), { text, ended: true })).toBe(expected);
  });

  it('takes an answer that was cut for a violation only where the rule says so', () => {
    expect(violates(rule({ op: 'cut' }), { text: 'a', ended: false })).toBe(true);
    expect(violates(rule({ op: 'words_over', max: 9 }), { text: 'a', ended: false })).toBe(false);
  });
});
