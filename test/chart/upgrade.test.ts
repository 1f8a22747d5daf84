// An upgrade from every version before: its values still render, and what Kubernetes refuses to change is as it was.
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { repositoryRoot } from '@backtalk/kit/testing';
import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import { render } from './helm.js';
import { immutableOf } from './immutable.js';

const folder = join(repositoryRoot(), 'test', 'chart', 'previous');
const version = z.object({
  values: z.record(z.string(), z.unknown()),
  immutable: z.record(z.string(), z.unknown()),
});

describe.each(readdirSync(folder).filter((name) => name.endsWith('.json')))('from %s', (name) => {
  const { values, immutable } = version.parse(JSON.parse(readFileSync(join(folder, name), 'utf8')));
  const now = immutableOf(render(values));

  it('an upgrade renders its values, and keeps every workload and claim', () => {
    expect(Object.keys(now)).toEqual(expect.arrayContaining(Object.keys(immutable)));
  });

  it.each(Object.keys(immutable))('the upgrade of %s keeps what cannot be changed', (workload) => {
    expect(now[workload]).toEqual(immutable[workload]);
  });
});
