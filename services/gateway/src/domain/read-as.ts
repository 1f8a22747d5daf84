// Reads a request's body by a schema; what does not fit is refused as OpenAI's API does it, by the parameter's name.
import { isJsonObject, type JsonObject } from '@backtalk/kit/pure';
import type { z } from 'zod';
import { gatewayErrors } from '../errors.js';

/** Of a key that a caller made up, so much is named. */
export const keyCharactersMax = 64;

/** For what OpenAI's API has and this one has not: another refusal than for a value out of range. */
export function unsupported(message: string) {
  return { message, params: { unsupported: true } };
}

/** The typed value, and all fields as they came. Null counts as absent. */
export function readAs<T>(schema: z.ZodType<T>, body: unknown): { readonly value: T; readonly fields: JsonObject } {
  if (!isJsonObject(body)) throw gatewayErrors.invalidJson({ why: 'it is not an object' });
  const read = schema.safeParse(body);
  if (read.success) return { value: read.data, fields: body };
  const issue = read.error.issues[0];
  const path = [...(issue?.path ?? [])];
  const unknownKey = issue?.code === 'unrecognized_keys' ? issue.keys[0] : undefined;
  if (unknownKey !== undefined) path.push(unknownKey.slice(0, keyCharactersMax));
  const param = path.reduce<string>((named, key) => {
    if (typeof key === 'number') return `${named}[${key}]`;
    return named === '' ? String(key) : `${named}.${String(key)}`;
  }, '');
  const why = issue?.message ?? 'it cannot be read';
  if (unknownKey !== undefined || (issue?.code === 'custom' && issue.params?.['unsupported'] === true))
    throw gatewayErrors.unsupportedParameter({ param, why });
  const found = path.reduce<unknown>(
    (value, key) => (typeof value === 'object' && value !== null ? Reflect.get(value, key) : undefined),
    body,
  );
  if (found === undefined || found === null) throw gatewayErrors.missingParameter({ param });
  throw gatewayErrors.invalidParameter({ param, why });
}
