import { readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { repositoryRoot, TemporaryDirectory } from '@backtalk/kit/testing';
import { afterAll, describe, expect, it } from 'vitest';
import { readPersona } from './persona-file.js';

const valid = {
  name: 'pirate',
  who: 'You are a pirate.',
  judges: 'It speaks as on a ship.',
  wish: 'Speak as on a ship.',
  scale: [
    { score: 0, means: 'as on land' },
    { score: 1, means: 'as on a ship' },
  ],
  tasks: { train: ['Why?'], heldout: ['How?', 'When?'] },
};
const folder = new TemporaryDirectory('personas');
afterAll(() => {
  folder.remove();
});

function written(contents: unknown): string {
  const path = folder.join('persona.json');
  writeFileSync(path, JSON.stringify(contents));
  return path;
}

describe('readPersona', () => {
  it('reads each persona of the tree, named as its file, with a block of 32 held-out tasks', () => {
    const names = readdirSync(join(repositoryRoot(), 'test', 'simulate', 'personas')).map((file) => file.split('.')[0]);
    expect(names).toEqual(['student', 'ta', 'teacher']);
    for (const name of names) {
      const persona = readPersona(name ?? '');
      expect(persona.name).toBe(name);
      expect(new Set(persona.tasks.heldout).size, name).toBe(32);
    }
  });

  it('reads a file by its path', () => {
    expect(readPersona(written(valid))).toEqual(valid);
  });

  it.each([
    [{ ...valid, name: 'a pirate' }, /name: a name is letters/],
    [{ ...valid, who: ' ' }, /who: /],
    [{ ...valid, judges: 'x'.repeat(4_001) }, /judges: /],
    [{ ...valid, scale: [{ score: 7, means: 'splendid' }, valid.scale[1]] }, /scale\.0\.score: /],
    [{ ...valid, scale: [valid.scale[0]] }, /scale: /],
    [{ ...valid, colour: 'red' }, /colour/],
    [{ ...valid, tasks: { train: ['How?'], heldout: ['how?', 'When?'] } }, /"How\?" stands in both/],
  ])('refuses a persona that cannot be played, by what is wrong with it (%#)', (contents, words) => {
    expect(() => readPersona(written(contents))).toThrow(words);
  });
});
