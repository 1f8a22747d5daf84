import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { repositoryRoot } from '@backtalk/kit/testing';
import { describe, expect, it } from 'vitest';
import { copies, only, stagesOf } from './dockerfile.js';

describe.each(['services', 'worker'])('the recipe of %s', (name) => {
  const [build, last] = stagesOf(name);

  it('a recipe ends in a stage that runs as a number, from a base that can be pinned', () => {
    expect(only(last, 'USER')).toMatch(/^[1-9]\d+:[1-9]\d+$/);
    expect(last.base).toMatch(/^\$\{(NODE|PYTHON)_IMAGE\}$/);
    expect(last.instructions.filter(({ word }) => word === 'RUN' || word === 'ADD')).toEqual([]);
  });

  it('copies nothing but what .dockerignore lets through', () => {
    const open = readFileSync(join(repositoryRoot(), '.dockerignore'), 'utf8').match(/(?<=^!).+$/gm) ?? [];
    const taken = copies(build).flatMap(({ sources }) => sources);
    const isOpen = (path: string) => open.some((known) => path === known || path.startsWith(`${known}/`));
    expect(taken.filter((path) => !isOpen(path))).toEqual([]);
  });

  it('puts no secret into a layer', () => {
    const text = JSON.stringify([build, last]);
    expect(text).not.toMatch(/PASSWORD|SECRET|TOKEN|_KEY/);
  });
});
