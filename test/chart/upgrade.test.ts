// An upgrade from every version before: its values still render, and what Kubernetes refuses to change is as it was.
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { repositoryRoot } from '@backtalk/kit/testing';
import { describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import { z } from 'zod';
import { chartFolder, render, renderReusing, type RenderedObject, type Values } from './helm.js';
import { immutableOf } from './immutable.js';
import { complaintsAbout, startedIn } from './started-in.js';

const folder = join(repositoryRoot(), 'test', 'chart', 'previous');
const version = z.object({
  values: z.record(z.string(), z.unknown()),
  immutable: z.record(z.string(), z.unknown()),
});

describe.each(readdirSync(folder).filter((name) => /^\d+\.\d+\.\d+\.json$/.test(name)))('from %s', (name) => {
  const { values, immutable } = version.parse(JSON.parse(readFileSync(join(folder, name), 'utf8')));
  const now = immutableOf(render(values));

  it('an upgrade renders its values, and keeps every workload and claim', () => {
    const kept = Object.keys(immutable).filter((object) => !isService(object));
    expect(Object.keys(now)).toEqual(expect.arrayContaining(kept));
  });

  it.each(Object.keys(immutable))('the upgrade of %s keeps what cannot be changed', (object) => {
    // A Service holds nothing: one that is gone is in nobody's way, as one of another kind under its name would be.
    const isGone = isService(object) && !(object in now);
    expect(isGone ? immutable[object] : now[object]).toEqual(immutable[object]);
  });
});

function isService(object: string): boolean {
  return object.startsWith('Service ');
}

it('every chart before the newest has its values, and what it cannot change, in a file', () => {
  const versions = readFileSync(join(chartFolder, 'CHANGELOG.md'), 'utf8').match(/(?<=^## )\S+$/gm) ?? [];
  const [newest, ...older] = versions;
  expect(readFileSync(join(chartFolder, 'Chart.yaml'), 'utf8')).toContain(`\nversion: ${String(newest)}\n`);
  expect(older).not.toEqual([]);
  const files = older.flatMap((one) => [`${one}.json`, `${one}.values.json`]);
  expect(readdirSync(folder)).toEqual(expect.arrayContaining(files));
});

/** Variables that hold what a missing value becomes when nothing is in its place. */
function emptiedIn(objects: readonly RenderedObject[]): string[] {
  const variables = startedIn(objects).flatMap(({ container, environment }) =>
    Object.entries(environment).map(([name, value]) => `${container.name} ${name}=${value}`),
  );
  return variables.filter((line) => /<nil>|=0s$|null/.test(line));
}

const sections = z.record(z.string(), z.unknown());
const firstValues = sections.parse(JSON.parse(readFileSync(join(folder, '0.1.0.values.json'), 'utf8')));

/** Values of charts between the releases, by what a component of theirs had otherwise than in 0.1.0; what is undefined was not there. */
const earlier: Readonly<Record<string, Readonly<Record<string, object>>>> = {
  '0.1.0': {},
  'a chart before vote shares': { judge: { versionsBehind: undefined, voteShare: undefined } },
  'a chart with a queue of votes': { judge: { turnsInFlight: 8, turnsInHand: undefined } },
  'a chart with recipes': {
    trainer: {
      recipe: 'tiny',
      recipeSet: {},
      method: undefined,
      loraRank: undefined,
      loraAlpha: undefined,
      batchSize: undefined,
    },
  },
};

function valuesOf(name: string): Values {
  const otherwise = Object.entries(earlier[name] ?? {}).map(([component, some]) => [
    component,
    { ...sections.parse(firstValues[component]), ...some },
  ]);
  return { ...firstValues, ...Object.fromEntries(otherwise) } as Values;
}

describe.each(Object.keys(earlier))('with --reuse-values over %s', (name) => {
  const before = valuesOf(name);
  const objects = renderReusing(before);

  it('an upgrade that reuses values starts every process', () => {
    expect(complaintsAbout(objects)).toEqual([]);
    expect(emptiedIn(objects)).toEqual([]);
  });

  it('an upgrade that reuses values keeps every workload and claim', () => {
    expect(immutableOf(objects)).toEqual(immutableOf(render()));
  });

  it('an upgrade that reuses values may switch KEDA on', () => {
    const keda = { prometheusUrl: 'http://p:9090' };
    const scaled = renderReusing(before, { judge: { autoscaling: { kind: 'keda' } }, keda });
    expect(scaled.map(({ kind }) => kind)).toContain('ScaledObject');
  });
});

it('numbers of training that were chosen before recipes are kept as numbers of the recipe', () => {
  const objects = renderReusing(valuesOf('a chart before vote shares'), {
    trainer: { loraRank: 32, batchSize: 4, method: 'opd' },
  });
  const trainer = startedIn(objects).find(({ container }) => container.name === 'trainer');
  expect(trainer?.environment['BACKTALK_RECIPE_SET']).toBe('effective=4,loraRank=32,method=opd');
});

/** Every path of the values, down to those that hold no map. */
function pathsIn(values: unknown, at: readonly string[] = []): string[][] {
  if (typeof values !== 'object' || values === null || Array.isArray(values)) return [];
  return Object.entries(values).flatMap(([name, below]) => [[...at, name], ...pathsIn(below, [...at, name])]);
}

describe('null', () => {
  const paths = pathsIn(parse(readFileSync(join(chartFolder, 'values.yaml'), 'utf8')));
  const nulled = (path: readonly string[]): unknown =>
    path.length === 0 ? null : { [path[0] ?? '']: nulled(path.slice(1)) };

  it('null in the place of every value means the defaults', () => {
    const all: Values = Object.assign({}, ...paths.filter(({ length }) => length === 1).map(nulled)) as Values;
    const objects = render({ ...all, runAs: 10_001 });
    expect(immutableOf(objects)).toEqual(immutableOf(render()));
    expect(complaintsAbout(objects)).toEqual([]);
  });

  it('null in the place of any one value leaves no hole', () => {
    const leaves = paths.filter((path) => !/^(labels|extraObjects|runAs)$/.test(path[0] ?? ''));
    const merged = leaves.reduce<Record<string, unknown>>((into, path) => setNull(into, path), {});
    const objects = render(merged);
    expect(complaintsAbout(objects)).toEqual([]);
    expect(emptiedIn(objects)).toEqual([]);
  });
});

/** The deepest paths win: a map is null only where nothing below it is. */
function setNull(into: Record<string, unknown>, path: readonly string[]): Record<string, unknown> {
  const [first = '', ...rest] = path;
  if (rest.length === 0) into[first] ??= null;
  else into[first] = setNull((into[first] as Record<string, unknown> | null) ?? {}, rest);
  return into;
}
