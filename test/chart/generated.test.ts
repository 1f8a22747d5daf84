// Files of the chart that are made from something else are what they would be if they were made now, and every value of
// the chart is explained and known to the schema.
import { readFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { parse } from 'yaml';
import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import { generatedFiles } from './generated-files.js';
import { chartFolder } from './helm.js';
import { rowsOf } from './values-comments.js';

/** Lay-out is the formatter's: words and values count. */
function contentOf(path: string, text: string): unknown {
  if (!path.endsWith('.md')) return parse(text);
  return text
    .split('\n')
    .map((line) => line.replaceAll(/\s+/g, ' ').replaceAll(/-{3,}/g, '-').trim())
    .filter((line) => line !== '');
}

it.each(generatedFiles.map((file) => [basename(file.path), file] as const))(
  '%s is current (node test/dist/chart/write-generated.js)',
  (_, { path, text }) => {
    expect(contentOf(path, readFileSync(path, 'utf8'))).toEqual(contentOf(path, text()));
  },
);

const values = readFileSync(join(chartFolder, 'values.yaml'), 'utf8');

it('every value has a comment', () => {
  expect(
    rowsOf(values)
      .filter(({ comment }) => comment === '')
      .map(({ path }) => path),
  ).toEqual([]);
});

interface Schema {
  readonly $ref?: string;
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly additionalProperties?: unknown;
  readonly type?: unknown;
  /** A name that a value had in an earlier chart, which --reuse-values brings. */
  readonly deprecated?: boolean;
}
const schemaShape: z.ZodType<Schema> = z.lazy(() =>
  z.looseObject({
    $ref: z.string().optional(),
    properties: z.record(z.string(), schemaShape).optional(),
    additionalProperties: z.unknown().optional(),
    type: z.unknown().optional(),
    deprecated: z.boolean().optional(),
  }),
) as z.ZodType<Schema>;

describe('values.schema.json', () => {
  const document: unknown = JSON.parse(readFileSync(join(chartFolder, 'values.schema.json'), 'utf8'));
  const schema = schemaShape.parse(document);
  const definitions = z.object({ $defs: z.record(z.string(), schemaShape) }).parse(document).$defs;
  const resolved = (part: Schema): Schema =>
    part.$ref === undefined ? part : (definitions[part.$ref.replace('#/$defs/', '')] ?? {});

  /** Paths that values have and the schema does not name, or names and values do not have. */
  function differences(part: Schema, value: unknown, at: string): string[] {
    const { properties, additionalProperties } = resolved(part);
    if (properties === undefined || typeof value !== 'object' || value === null) return [];
    const entries: [string, unknown][] = Object.entries(value);
    return [
      ...(additionalProperties === false ? [] : [`${at} is open`]),
      ...entries.flatMap(([name, below]) => {
        const known = properties[name];
        return known === undefined
          ? [`${at}/${name} is not in the schema`]
          : differences(known, below, `${at}/${name}`);
      }),
      ...Object.keys(properties)
        .filter((name) => resolved(properties[name] ?? {}).deprecated !== true)
        .filter((name) => !entries.some(([other]) => other === name) && !isOptional(at))
        .map((name) => `${at}/${name} is not in values.yaml`),
    ];
  }

  it('names every value, and nothing but them', () => {
    expect(differences(schema, parse(values), '')).toEqual([
      '/global is not in values.yaml',
      '/enabled is not in values.yaml',
    ]);
  });
});

/** Pools take what they leave out from `poolDefaults`, resources and pods may leave out any part, and scaling goes by its component. */
function isOptional(path: string): boolean {
  return path.startsWith('/pools/') || /\/(resources|pod|autoscaling)$/.test(path);
}
