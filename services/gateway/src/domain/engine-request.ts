// What is the engine asked?
//
// In: the client's request, its messages with lessons in them where some are shown, the engine and the weights. Out: the body
// for the engine: those of the client's fields that an engine of its dialect takes. Pure.
import { dialectNamed, fateOfChatField, JsonText, type EngineChatRequest } from '@backtalk/dialects';
import { isBaseVersion, isJsonObject, type JsonObject } from '@backtalk/kit';
import { gatewayErrors } from '../errors.js';
import type { ChatRequest } from './chat-request.js';
import type { Replica } from './replica-choice.js';
import type { Sampling } from './sampling.js';

export interface Asking {
  readonly version: string;
  readonly replica: Replica;
  /** JSON array of the messages, with lessons in them where some are shown. */
  readonly messages: Uint8Array;
  /** Of what the engine may compute once for several requests: of one tenant's alone, whose timing would tell others what it asked. */
  readonly cacheSalt: string;
  /** Whether the engine is told the bound on the answer's tokens. */
  readonly isBounded: boolean;
}

/** Throws `unsupported_parameter` for a field that engines of other dialects take, and this one does not. */
export function engineRequest(
  { api, fields, writtenFields, sampling, thinkingIsSwitched }: ChatRequest,
  { version, replica, messages, cacheSalt, isBounded }: Asking,
): EngineChatRequest {
  const dialect = dialectNamed(replica.dialect);
  const isPassed = (field: string): boolean => {
    const fate = fateOfChatField(field, dialect);
    // A switch that every dialect is let in with, and which this one has no word for.
    if (field === 'chat_template_kwargs' && thinkingIsSwitched && fate === 'refused') return false;
    if (field === 'max_completion_tokens' && !isBounded) return false;
    if (fate === 'refused')
      throw gatewayErrors.unsupportedParameter({ param: field, why: 'the engine that answers here does not take it' });
    return fate === 'passed';
  };
  const passedOn: Record<string, unknown> = {};
  for (const field of Object.keys(fields)) if (isPassed(field)) passedOn[field] = fields[field];
  for (const [field, json] of Object.entries(writtenFields)) if (isPassed(field)) passedOn[field] = new JsonText(json);
  const sampler = dialect === 'openai' ? askedFor(sampling.fields, fields) : sampling.fields;
  const written = dialect === 'openai' && api !== 'chat' ? withoutExtras(messages) : messages;
  const salt = dialect === 'openai' ? {} : { cache_salt: cacheSalt };
  return { ...passedOn, ...sampler, ...salt, model: engineModelOf(version, replica), messages: new JsonText(written) };
}

/**
 * Clients of Anthropic's API must bound every answer, and take more than a context holds: what is left of it is as good. Others
 * are told that it is too much.
 */
export function mayLoosen({ api }: ChatRequest): boolean {
  return api === 'messages';
}

/** What another API's messages are written with besides: engines of one's own take no notice, and services of others refuse it. */
const extras = ['is_error', 'reasoning', 'reasoning_content'] as const;

function withoutExtras(messages: Uint8Array): Uint8Array {
  const text = Buffer.from(messages.buffer, messages.byteOffset, messages.byteLength).toString();
  if (!extras.some((key) => text.includes(`"${key}":`))) return messages;
  const read: unknown = JSON.parse(text);
  const strict = (Array.isArray(read) ? read : []).filter(isJsonObject).map((message) => {
    const kept = Object.entries(message).filter(([key]) => !extras.some((extra) => extra === key));
    return Object.fromEntries(kept);
  });
  return Buffer.from(JSON.stringify(strict));
}

/** Services of others refuse arguments that they do not know: what the client left open is left out. */
function askedFor({ top_k, min_p, ...standard }: Sampling['fields'], fields: ChatRequest['fields']): JsonObject {
  return {
    ...standard,
    ...(fields['top_k'] === undefined ? {} : { top_k }),
    ...(fields['min_p'] === undefined ? {} : { min_p }),
  };
}

function engineModelOf(version: string, replica: Replica): string {
  return isBaseVersion(version) ? replica.baseModel : version;
}
