// Are a request's numbers in OpenAI's ranges?
//
// In: the body's fields. Out: nothing, or a refusal that names the parameter. Null counts as absent. Pure.
import { gatewayErrors } from '../errors.js';
import type { JsonObject } from './json-shape.js';

export interface NumberRange {
  readonly min: number;
  readonly max?: number;
  readonly integer?: boolean;
}

const ranges: Readonly<Record<string, NumberRange>> = {
  temperature: { min: 0, max: 2 },
  top_p: { min: 0, max: 1 },
  min_p: { min: 0, max: 1 },
  top_k: { min: -1, integer: true },
  presence_penalty: { min: -2, max: 2 },
  frequency_penalty: { min: -2, max: 2 },
  repetition_penalty: { min: 0 },
  max_tokens: { min: 1, integer: true },
  max_completion_tokens: { min: 1, integer: true },
  top_logprobs: { min: 0, max: 20, integer: true },
  seed: { min: Number.MIN_SAFE_INTEGER, integer: true },
};

export function checkNumbers(body: JsonObject): void {
  for (const param in ranges) {
    const value = body[param];
    const range = ranges[param];
    if (value !== undefined && value !== null && range !== undefined) checkNumber(param, value, range);
  }
}

export function checkNumber(
  param: string,
  value: unknown,
  { min, max = Infinity, integer = false }: NumberRange,
): void {
  if (typeof value !== 'number') throw gatewayErrors.invalidParameter({ param, why: 'it must be a number' });
  if (integer && !Number.isSafeInteger(value))
    throw gatewayErrors.invalidParameter({ param, why: 'it must be an integer' });
  if (value < min) throw gatewayErrors.invalidParameter({ param, why: `it must be at least ${min}` });
  if (value > max) throw gatewayErrors.invalidParameter({ param, why: `it must be at most ${max}` });
}
