// Translates what an engine says when it refuses, once, with the reason for each mapping.
//
// In: status, headers and body of a reply that is not a success. Out: an error of the catalogue. An engine's own words
// are passed on only where they speak of numbers and parameters, never where they may repeat a conversation.
import { isJsonObject, type BacktalkError } from '@backtalk/kit';
import { engineErrors } from '../errors.js';
import type { Reply } from '../transport/engine-connections.js';
import type { WireError } from './chat-wire.js';

export interface CallContext {
  readonly dialect: string;
  readonly model: string;
  readonly path: string;
}

const retryAfterDefaultSeconds = 1;
const notHeld =
  /^(?:Got LoRA adapter that has never been loaded|Failed to implicitly load LoRA adapter|The following requested LoRA adapters are not loaded|LoRA adapter .{1,200} was requested, but LoRA is not enabled)/;
/** With these words, and with 400, some hosts refuse a key, or an account with nothing left; */
const keyRefused =
  /^(?:API key (?:not valid|expired|not found)|(?:Incorrect|Invalid) API key|Your credit balance is too low)/i;
/** and name a model that is not there. */
const modelUnknown =
  /^(?:Invalid model: |Model Not Exist|The model `[^`]{1,200}` does not exist|\S{1,200} is not a valid model ID)/i;
/** In the words of vLLM and OpenAI, SGLang, llama.cpp, Anthropic, Google, xAI and TGI. */
const tooLong =
  /maximum context length|longer than the model's context length|max_model_len|exceeds the available context size|prompt is too long|input token count|maximum prompt length|`inputs` tokens \+ `max_new_tokens`/;
/** More than the host takes at all: no waiting makes it less. */
const tooLarge = /^Request too large\b/i;
/** Templates of older models raise it. */
const systemRefused = /\bsystem role not supported\b|\broles must alternate\b/i;
/** No conversation holds these by chance. */
const namedField = /\b(?:response_format|chat_template_kwargs|thinking_token_budget)\b/;

export function refusalOf(reply: Reply, context: CallContext): BacktalkError {
  const error = errorIn(reply.text);
  switch (reply.status) {
    // 402: nothing is left on the account that the key belongs to.
    case 401:
    case 402:
    case 403:
      return engineErrors.unauthorized({});
    case 404:
      // Unknown paths answer {"detail": …}; unknown models and adapters answer {"error": …}.
      if (error === undefined) return engineErrors.unsupported({ what: context.path, dialect: context.dialect });
      return engineErrors.modelNotFound({ model: context.model });
    case 405:
    case 501:
      return engineErrors.unsupported({ what: context.path, dialect: context.dialect });
    // Of a host or a proxy that waited too long for what stands behind it, or that does something else first: it passes.
    case 408:
    case 409:
    case 425:
      return engineErrors.failed({ engineStatus: reply.status });
    // Of its bytes, or of the tokens that a key may use in a minute.
    case 413:
      return engineErrors.contextLengthExceeded({ param: 'messages' });
    // Admission limits answer 503 or 429, mostly without Retry-After.
    case 429:
    case 503: {
      if (tooLarge.test(error?.message ?? '')) return engineErrors.contextLengthExceeded({ param: 'messages' });
      const asked = askedSeconds(reply.headers);
      return engineErrors.overloaded(
        asked === undefined
          ? { retryAfterSeconds: retryAfterDefaultSeconds }
          : { retryAfterSeconds: asked, isAsked: true },
      );
    }
    default:
  }
  // SGLang has no 404 for an adapter that it does not hold, or whose folder is gone since.
  if (reply.status === 400 && context.dialect === 'sglang' && notHeld.test(error?.message ?? ''))
    return engineErrors.modelNotFound({ model: context.model });
  if (reply.status >= 500) return engineErrors.failed({ engineStatus: reply.status });
  const message = error?.message ?? messageIn(reply.text);
  // At their beginning, so that no quotation of a conversation is taken for them.
  if (keyRefused.test(message)) return engineErrors.unauthorized({});
  if (modelUnknown.test(message)) return engineErrors.modelNotFound({ model: context.model });
  // Some name the field in their words alone.
  const named = namedField.exec(reply.text)?.[0] ?? (systemRefused.test(message) ? 'system' : undefined);
  const param = error?.param?.replace(/^body\./, '').slice(0, 80) ?? named;
  const isTooLong =
    error?.code === 'context_length_exceeded' || error?.param === 'input_tokens' || tooLong.test(message);
  if (isTooLong) {
    const digits = /(?:context length (?:is|of)|context length \(|max_model_len=)\s*(\d+)/.exec(message)?.[1];
    const limit = digits === undefined ? undefined : Number(digits);
    return engineErrors.contextLengthExceeded({ param: param ?? 'messages', limit });
  }
  // Schema errors quote the input beside `'msg'`; value errors of a named parameter quote only its value.
  const schema = /'msg': '([^']{1,160})'/.exec(message)?.[1];
  const valueError = error?.param && !error.param.startsWith('body') && message.length <= 200 ? message : undefined;
  return engineErrors.invalidRequest({ param, why: schema ?? valueError });
}

/** `Retry-After` in seconds or as a date; OpenAI's in milliseconds beside it. */
function askedSeconds(headers: Reply['headers']): number | undefined {
  const ms = Number(headers['retry-after-ms'] ?? Number.NaN);
  const given = String(headers['retry-after'] ?? '');
  const seconds = Number.isFinite(ms) ? ms / 1_000 : Number(given === '' ? Number.NaN : given);
  const until = Number.isNaN(seconds) ? (Date.parse(given) - Date.now()) / 1_000 : seconds;
  return Number.isFinite(until) && until > 0 ? Math.ceil(until) : undefined;
}

/** An error frame inside a stream: the answer is lost, whatever `[DONE]` follows. */
export function refusalInStream(error: WireError, context: CallContext): BacktalkError {
  const status = typeof error.code === 'number' ? error.code : 500;
  if (status >= 500 && status !== 503) return engineErrors.streamBroken({ why: 'it reported an error' });
  return refusalOf({ status, headers: {}, text: JSON.stringify({ error }) }, context);
}

/** Where the error is its own message. */
function messageIn(text: string): string {
  try {
    const body: unknown = JSON.parse(text);
    const error = isJsonObject(body) ? body['error'] : undefined;
    return typeof error === 'string' ? error : '';
  } catch {
    return '';
  }
}

export function errorIn(text: string): WireError | undefined {
  try {
    const parsed: unknown = JSON.parse(text);
    // Google's stands in a list.
    const body: unknown = Array.isArray(parsed) ? parsed[0] : parsed;
    if (!isJsonObject(body)) return undefined;
    if (Array.isArray(body['detail'])) return invalidField(body['detail'][0]);
    // SGLang's is the body itself, but for `/generate`.
    const error = body['object'] === 'error' ? body : body['error'];
    if (!isJsonObject(error)) return undefined;
    const { message, type, param, code } = error;
    return {
      message: typeof message === 'string' ? message : '',
      type: typeof type === 'string' ? type : '',
      param: typeof param === 'string' ? param : null,
      code: typeof code === 'number' || typeof code === 'string' ? code : null,
    };
  } catch {
    return undefined;
  }
}

/** As pydantic says it, by which many a server checks what it is sent. */
function invalidField(detail: unknown): WireError | undefined {
  if (!isJsonObject(detail)) return undefined;
  const { loc, msg, type } = detail;
  const path = Array.isArray(loc) ? loc.filter((part) => typeof part === 'string') : [];
  return {
    message: typeof msg === 'string' ? msg : '',
    type: typeof type === 'string' ? type : '',
    param: path.length === 0 ? null : path.join('.'),
    code: null,
  };
}
