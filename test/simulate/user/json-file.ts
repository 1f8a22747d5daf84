// A file that says who is simulated, checked. In: a name of one in the tree, or a path. Out: its contents, or a refusal that says
// what is wrong with it.
import { existsSync, readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { repositoryRoot } from '@backtalk/kit/testing';
import type { z } from 'zod';
import { userErrors } from './errors.js';

/** @param folder in `test/simulate`, where a name is looked for */
export function readJsonFile<T>(folder: string, nameOrPath: string, schema: z.ZodType<T>): T {
  const named = join(repositoryRoot(), 'test', 'simulate', folder, `${nameOrPath}.json`);
  const path = /^[\w-]+$/.test(nameOrPath) && existsSync(named) ? named : resolve(nameOrPath);
  const { data, error } = schema.safeParse(jsonOf(nameOrPath, path));
  if (error === undefined) return data;
  const [issue] = error.issues;
  throw userErrors.userInvalid({ name: nameOrPath, why: `${issue?.path.join('.') ?? ''}: ${issue?.message ?? ''}` });
}

function jsonOf(name: string, path: string): unknown {
  try {
    return JSON.parse(readFileSync(path, 'utf8'));
  } catch (error) {
    const why = error instanceof SyntaxError ? 'it is not JSON' : `there is no file to read at ${path}`;
    throw userErrors.userInvalid({ name, why }, error);
  }
}

/** What is measured on must not have been talked about. */
export function refuseKnown(name: string, field: string, train: readonly string[], heldOut: readonly string[]): void {
  const measured = new Set(heldOut.map((one) => one.toLowerCase()));
  const known = train.find((one) => measured.has(one.toLowerCase()));
  if (known !== undefined)
    throw userErrors.userInvalid({ name, why: `${field}: "${known}" stands in both train and heldout` });
}
