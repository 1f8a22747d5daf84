import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { repositoryRoot } from '@backtalk/kit/testing';
import { describe, expect, it } from 'vitest';
import { readUser } from './user-file.js';

const trainer = join(repositoryRoot(), 'services', 'trainer', 'src', 'domain', 'rehearsal-questions.ts');
const gate = join(repositoryRoot(), 'services', 'publisher', 'src', 'domain', 'behaviour.ts');
const users = readdirSync(join(repositoryRoot(), 'test', 'simulate', 'users')).map((name) =>
  readUser(name.replace('.json', '')),
);
const questionsIn = (path: string) =>
  Array.from(readFileSync(path, 'utf8').matchAll(/^ {2}'(.+)',$/gmu), ([, question = '']) => question.toLowerCase());

describe('questions that versions are measured with', () => {
  it('none of them is rehearsed, by the trainer’s own list', () => {
    const rehearsed = questionsIn(trainer);
    expect(rehearsed.length).toBeGreaterThan(30);
    const measured = users.flatMap(({ questions }) => [...questions.train, ...questions.heldout]);
    expect(measured.length).toBeGreaterThan(400);
    const asked = new Set([...measured.map((question) => question.toLowerCase()), ...questionsIn(gate)]);
    expect(rehearsed.filter((question) => asked.has(question))).toEqual([]);
  });
});
