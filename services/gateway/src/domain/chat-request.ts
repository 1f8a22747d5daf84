// Is this a chat request that the gateway can serve?
//
// In: a parsed JSON body. Out: the request with its known parts typed, or a refusal that names the parameter.
// Fields that the gateway does not know stay in `body` and go to the engine. Pure.
import { gatewayErrors } from '../errors.js';
import { isDeeperThan, isObject, jsonDepthMax, type JsonObject } from './json-shape.js';
import { checkMessages, type ChatMessage } from './chat-messages.js';
import { checkNumber, checkNumbers } from './chat-numbers.js';

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

/** Fields that would let a caller steer the engine at another machine, template or file. */
const refusedFields = [
  'kv_transfer_params',
  'ec_transfer_params',
  'bootstrap_host',
  'bootstrap_port',
  'bootstrap_room',
  'lora_path',
  'chat_template',
  'vllm_xargs',
] as const;

export function readChatRequest(value: unknown): ChatRequest {
  if (!isObject(value)) throw gatewayErrors.invalidJson({ why: 'it is not an object' });
  if (isDeeperThan(value, jsonDepthMax))
    throw gatewayErrors.invalidJson({ why: `it is nested deeper than ${jsonDepthMax}` });
  const model = value['model'];
  if (model === undefined || model === null) throw gatewayErrors.missingParameter({ param: 'model' });
  if (typeof model !== 'string') throw gatewayErrors.invalidParameter({ param: 'model', why: 'it must be a string' });
  refuseFields(value);
  checkNumbers(value);
  const stream = flag(value, 'stream');
  return {
    model,
    messages: checkMessages(value['messages']),
    tools: list(value, 'tools'),
    stream,
    wantsUsage: stream && wantsUsage(value['stream_options']),
    wantsLogprobs: flag(value, 'logprobs'),
    wantsTokenIds: flag(value, 'return_token_ids'),
    user: text(value, 'user'),
    body: value,
  };
}

function refuseFields(body: JsonObject): void {
  for (const param of refusedFields) {
    if (body[param] !== undefined && body[param] !== null)
      throw gatewayErrors.unsupportedParameter({ param, why: 'callers may not set it here' });
  }
  const choices = body['n'];
  if (choices === undefined || choices === null) return;
  checkNumber('n', choices, { min: 1, integer: true });
  if (choices !== 1)
    throw gatewayErrors.unsupportedParameter({ param: 'n', why: 'an answer has one choice here; send n = 1' });
}

function flag(body: JsonObject, param: string): boolean {
  const value = body[param];
  if (value === undefined || value === null) return false;
  if (typeof value !== 'boolean') throw gatewayErrors.invalidParameter({ param, why: 'it must be true or false' });
  return value;
}

function text(body: JsonObject, param: string): string | undefined {
  const value = body[param];
  if (value === undefined || value === null) return undefined;
  if (typeof value !== 'string') throw gatewayErrors.invalidParameter({ param, why: 'it must be a string' });
  return value;
}

function list(body: JsonObject, param: string): readonly unknown[] {
  const value = body[param];
  if (value === undefined || value === null) return [];
  if (!Array.isArray(value)) throw gatewayErrors.invalidParameter({ param, why: 'it must be a list' });
  return value;
}

function wantsUsage(options: unknown): boolean {
  if (options === undefined || options === null) return false;
  if (!isObject(options))
    throw gatewayErrors.invalidParameter({ param: 'stream_options', why: 'it must be an object' });
  return flag(options, 'include_usage');
}
