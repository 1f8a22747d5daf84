// Every values file of the chart: it lints, renders, and what it renders is what Kubernetes knows.
import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { pythonEnvironment, repositoryRoot } from '@backtalk/kit/testing';
import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import { lint, render, valuesFiles, type RenderedObject } from './helm.js';

const problems = z.array(z.object({ version: z.string(), object: z.string(), problem: z.string() }));

/** The oldest version that Chart.yaml allows, and the newest that there are schemas for. */
const versions = ['1.29', '1.37'];

function validate(objects: readonly RenderedObject[]) {
  const script = join(repositoryRoot(), 'test', 'chart', 'validate_objects.py');
  const run = spawnSync(join(pythonEnvironment(), 'bin', 'python'), [script, ...versions], {
    input: JSON.stringify(objects),
    encoding: 'utf8',
    timeout: 110_000,
    maxBuffer: 16 * 1024 * 1024,
  });
  expect(run.stderr).toBe('');
  return problems.parse(JSON.parse(run.stdout));
}

describe.each(valuesFiles)('%s', (file) => {
  it('passes helm lint --strict', () => {
    const { passed, output } = lint(file);
    expect(passed, output).toBe(true);
  });

  it('renders every object once, in the namespace of the release', () => {
    const objects = render({}, [file]);
    const names = objects.map(({ kind, metadata }) => `${kind} ${metadata.name}`);
    expect(new Set(names).size).toBe(names.length);
    expect(new Set(objects.map(({ metadata }) => metadata.namespace))).toEqual(new Set(['llm']));
  });
});

/** Kinds that come with operators; their shape is looked at in difference.test.ts. */
const customKinds: ReadonlySet<string> = new Set(['ServiceMonitor', 'PrometheusRule', 'ScaledObject']);

it('all objects of all values files are what Kubernetes 1.29 and 1.37 know', () => {
  const all = valuesFiles.flatMap((file) => render({}, [file]));
  // Most objects are the same with many values: each is looked at once.
  const different = new Map(all.map((object) => [JSON.stringify(withoutChecksums(object)), object]));
  const known = [...different.values()].filter(({ kind }) => !customKinds.has(kind));
  expect(known.length).toBeGreaterThan(100);
  expect(validate(known)).toEqual([]);
});

function withoutChecksums(object: RenderedObject): unknown {
  return JSON.parse(JSON.stringify(object).replaceAll(/"checksum\/secrets":"[^"]*"/g, '"checksum/secrets":""'));
}
