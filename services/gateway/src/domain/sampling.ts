// With which sampling parameters is an answer asked for?
//
// In: the client's request and the operator's default temperature. Out: the fields for the engine, and their record for the
// fact. A client's explicit choice is never changed; it only makes the sampler not plain. What is left out is filled in with
// the plain sampler, because a model's own generation config would set others. Pure.
import type { JsonObject } from '@backtalk/kit/pure';
import type { SamplingParameters } from '@backtalk/proto/facts';

interface SamplingFields {
  readonly temperature: number;
  readonly top_p: number;
  readonly top_k: number;
  readonly min_p: number;
}

export interface Sampling {
  readonly fields: SamplingFields;
  readonly parameters: SamplingParameters;
}

/** Fields that shape the distribution by their mere presence: grammars and biases. */
const shapingFields = [
  'logit_bias',
  'structured_outputs',
  'guided_json',
  'guided_regex',
  'guided_choice',
  'guided_grammar',
  'regex',
  'ebnf',
  'json_schema',
  'bad_words',
  'allowed_token_ids',
  'logits_processors',
  'thinking_token_budget',
] as const;

const topPMin = 1e-6;

export function samplingOf(body: JsonObject, defaultTemperature: number): Sampling {
  const maxTokens = body['max_completion_tokens'] ?? body['max_tokens'];
  const fields: SamplingFields = {
    temperature: numberOr(body['temperature'], defaultTemperature),
    // Engines take no 0: the likeliest token alone is in so little, too.
    top_p: Math.max(topPMin, numberOr(body['top_p'], 1)),
    top_k: numberOr(body['top_k'], -1),
    min_p: numberOr(body['min_p'], 0),
  };
  return {
    fields,
    parameters: {
      temperature: fields.temperature,
      topP: fields.top_p,
      topK: fields.top_k > 0 ? fields.top_k : -1,
      minP: fields.min_p,
      // 0 where the client left open how long the answer may be.
      maxTokens: numberOr(maxTokens, 0),
      plain: isPlain(fields, body),
    },
  };
}

function isPlain(fields: SamplingFields, body: JsonObject): boolean {
  if (fields.top_p !== 1 || fields.top_k > 0 || fields.min_p !== 0) return false;
  if (numberOr(body['presence_penalty'], 0) !== 0 || numberOr(body['frequency_penalty'], 0) !== 0) return false;
  if (numberOr(body['repetition_penalty'], 1) !== 1 || numberOr(body['min_tokens'], 0) !== 0) return false;
  if (shapingFields.some((field) => isSet(body[field]))) return false;
  const format = body['response_format'];
  if (typeof format === 'object' && format !== null && 'type' in format && format.type !== 'text') return false;
  // A named or required tool is enforced by a grammar.
  const tool = body['tool_choice'];
  return !isSet(tool) || tool === 'auto' || tool === 'none';
}

function isSet(value: unknown): boolean {
  if (value === undefined || value === null) return false;
  return typeof value !== 'object' || Object.keys(value).length > 0;
}

function numberOr(value: unknown, otherwise: number): number {
  return typeof value === 'number' ? value : otherwise;
}
