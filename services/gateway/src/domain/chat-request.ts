// Is this a chat request that the gateway can serve?
//
// In: a parsed JSON body. Out: the request with its known parts typed, or a refusal that names the parameter. Fields
// that the gateway does not know stay in `body` and go to the engine. Pure; parts that would make an engine fetch an
// address are refused.
import { isJsonObject, type JsonObject } from '@backtalk/kit';
import { z } from 'zod';
import { gatewayErrors } from '../errors.js';
import { readAs, unsupported } from './read-as.js';

/** An OpenAI chat message; `content` is text, a list of parts, or absent. */
export interface ChatMessage extends JsonObject {
  readonly role: string;
}

export interface ChatRequest {
  readonly model: string;
  readonly messages: readonly ChatMessage[];
  readonly tools: readonly unknown[];
  readonly stream: boolean;
  /** The client asked for a chunk with token counts. */
  readonly wantsUsage: boolean;
  readonly wantsLogprobs: boolean;
  readonly wantsTokenIds: boolean;
  /** OpenAI's `user` field. */
  readonly user: string | undefined;
  /** All fields, as they came. */
  readonly body: JsonObject;
}

const roles = new Set(['system', 'developer', 'user', 'assistant', 'tool', 'function']);
/** Deeper values would overflow the stack where they are written out again. */
const depthMax = 200;

const flag = z.boolean('it must be true or false').nullish();

function numberIn(min: number, max = Infinity) {
  const number = z.number('it must be a number').min(min, `it must be at least ${min}`);
  return number.max(max, `it must be at most ${max}`).nullish();
}

function integerIn(min: number, max = Number.MAX_SAFE_INTEGER) {
  const integer = z.number('it must be a number').int('it must be an integer');
  return integer.min(min, `it must be at least ${min}`).max(max, `it must be at most ${max}`).nullish();
}

/** For fields that would let a caller steer the engine at another machine, template or file. */
const refused = z.unknown().refine(isAbsent, unsupported('callers may not set it here')).optional();

/** The message itself goes through as it came: it is stored and passed on. */
const message = z.custom<ChatMessage>(isJsonObject, 'it must be an object').superRefine((given, context) => {
  const refuse = (path: PropertyKey[], why: string) => context.addIssue({ code: 'custom', path, message: why });
  const { role, content } = given;
  if (!roles.has(role)) refuse(['role'], `it must be one of ${[...roles].join(', ')}`);
  if (isAbsent(content) && role !== 'assistant') refuse(['content'], 'it is missing');
  if (isAbsent(content) || typeof content === 'string') return;
  if (!Array.isArray(content)) return refuse(['content'], 'it must be a string or a list of parts');
  for (const [index, part] of content.entries()) {
    if (!isJsonObject(part)) refuse(['content', index], 'it must be an object');
    // An engine would fetch any address that it is given, also a private one: only data that came with the request is allowed.
    else
      for (const key in part) {
        if (!key.endsWith('_url')) continue;
        const value = part[key];
        const address = isJsonObject(value) ? value['url'] : value;
        if (typeof address === 'string' && address.startsWith('data:')) continue;
        const path = ['content', index, key];
        context.addIssue({ code: 'custom', path, ...unsupported('addresses are not fetched; send the data itself') });
      }
  }
});

const schema = z.object({
  model: z.string('it must be a string'),
  kv_transfer_params: refused,
  ec_transfer_params: refused,
  bootstrap_host: refused,
  bootstrap_port: refused,
  bootstrap_room: refused,
  lora_path: refused,
  chat_template: refused,
  vllm_xargs: refused,
  temperature: numberIn(0, 2),
  top_p: numberIn(0, 1),
  min_p: numberIn(0, 1),
  top_k: integerIn(-1),
  presence_penalty: numberIn(-2, 2),
  frequency_penalty: numberIn(-2, 2),
  repetition_penalty: numberIn(0),
  max_tokens: integerIn(1),
  max_completion_tokens: integerIn(1),
  top_logprobs: integerIn(0, 20),
  seed: integerIn(Number.MIN_SAFE_INTEGER),
  n: integerIn(1).refine((n) => (n ?? 1) === 1, unsupported('an answer has one choice here; send n = 1')),
  stream: flag,
  stream_options: z.looseObject({ include_usage: flag }, 'it must be an object').nullish(),
  logprobs: flag,
  return_token_ids: flag,
  user: z.string('it must be a string').nullish(),
  tools: z.array(z.unknown(), 'it must be a list').nullish(),
  messages: z.array(message, 'it must be a list').min(1, 'it must hold at least one message'),
});

export function readChatRequest(body: unknown): ChatRequest {
  if (isJsonObject(body) && isDeeperThan(body, depthMax))
    throw gatewayErrors.invalidJson({ why: `it is nested deeper than ${depthMax}` });
  const { value, fields } = readAs(schema, body);
  const stream = value.stream ?? false;
  return {
    model: value.model,
    messages: value.messages,
    tools: value.tools ?? [],
    stream,
    wantsUsage: stream && (value.stream_options?.include_usage ?? false),
    wantsLogprobs: value.logprobs ?? false,
    wantsTokenIds: value.return_token_ids ?? false,
    user: value.user ?? undefined,
    body: fields,
  };
}

function isAbsent(value: unknown): value is undefined | null {
  return value === undefined || value === null;
}

/** True when objects and lists are nested deeper than the limit. Looks no deeper than that. */
function isDeeperThan(value: unknown, limit: number): boolean {
  if (typeof value !== 'object' || value === null) return false;
  if (limit === 0) return true;
  return (Array.isArray(value) ? value : Object.values(value)).some((child) => isDeeperThan(child, limit - 1));
}
