// Reads chat answers and chunks of OpenAI's shape, with the extra fields of vLLM and SGLang where they are.
//
// In: JSON text of an engine. Out: frames and captures. Hot: no schema library, one pass, nothing copied that need
// not be. It trusts an engine's types no further than `judgeCapture` checks them later.
import { isJsonObject } from '@backtalk/kit';
import type { Capture, TokenUsage } from '../capture/capture.js';
import type { EngineFrame, RawObject } from '../engine-client.js';
import { engineErrors } from '../errors.js';

interface WireToolCall {
  readonly index?: number;
  readonly id?: string | null;
  readonly function?: { readonly name?: string | null; readonly arguments?: string | null };
}

interface WireMessage {
  /** A text, or parts: some hosted models give thoughts and text as parts of one answer. */
  readonly content?: string | readonly unknown[] | null;
  readonly reasoning?: string | null;
  readonly reasoning_content?: string | null;
  readonly tool_calls?: readonly WireToolCall[] | null;
}

interface WireChoice {
  readonly index?: number;
  readonly delta?: WireMessage;
  readonly message?: WireMessage;
  readonly finish_reason?: string | null;
  readonly token_ids?: readonly number[] | null;
  readonly logprobs?: { readonly content?: readonly { readonly logprob: number }[] | null } | null;
}

interface WireUsage {
  readonly prompt_tokens?: number;
  readonly completion_tokens?: number;
  readonly total_tokens?: number;
  readonly prompt_tokens_details?: { readonly cached_tokens?: number | null } | null;
  /** DeepSeek's word for it. */
  readonly prompt_cache_hit_tokens?: number | null;
}

export interface WireError {
  readonly message?: string;
  readonly type?: string;
  readonly param?: string | null;
  readonly code?: number | string | null;
}

export interface WireChat extends RawObject {
  readonly choices?: readonly WireChoice[];
  readonly usage?: WireUsage | null;
  readonly prompt_token_ids?: readonly number[] | null;
  readonly error?: WireError;
}

/** The JSON object in a text of an engine. */
export function parseChat(text: string): WireChat {
  const value = parseJson(text);
  if (!isChat(value)) throw engineErrors.replyInvalid({ what: 'no object with choices' });
  return value;
}

export function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (cause) {
    throw engineErrors.replyInvalid({ what: 'broken JSON' }, cause);
  }
}

function isChat(value: unknown): value is WireChat {
  if (!isJsonObject(value)) return false;
  const { choices, error } = value;
  return isJsonObject(error) || (Array.isArray(choices) && choices.every(isJsonObject));
}

/** A frame of a chunk without an error. */
export function frameOf(raw: WireChat): EngineFrame {
  const choice = raw.choices?.[0];
  const usage = usageOf(raw.usage);
  const model = modelOf(raw);
  if (choice === undefined) return { raw, choice: -1, model, usage };
  const delta = choice.delta;
  return {
    raw,
    choice: choice.index ?? 0,
    model,
    ids: choice.token_ids ?? undefined,
    logprobs: choice.logprobs?.content?.map(({ logprob }) => logprob),
    promptIds: raw.prompt_token_ids ?? undefined,
    content: delta?.content === undefined || delta.content === null ? undefined : textOf(delta.content),
    reasoning: delta?.reasoning ?? delta?.reasoning_content ?? undefined,
    toolCallDeltas: delta?.tool_calls?.map((call) => ({
      index: call.index ?? 0,
      id: call.id ?? undefined,
      name: call.function?.name ?? undefined,
      arguments: call.function?.arguments ?? undefined,
    })),
    finishReason: choice.finish_reason ?? undefined,
    usage,
  };
}

/** The capture of a whole answer. */
export function captureOf(raw: WireChat): Capture {
  const choices = raw.choices ?? [];
  const choice = choices.find(({ index }) => (index ?? 0) === 0);
  if (choice?.message === undefined) throw engineErrors.replyInvalid({ what: 'no message' });
  const { message } = choice;
  return {
    promptIds: raw.prompt_token_ids ?? undefined,
    answerIds: choice.token_ids ?? [],
    logprobs: choice.logprobs?.content?.map(({ logprob }) => logprob) ?? [],
    text: textOf(message.content ?? ''),
    reasoning: message.reasoning ?? message.reasoning_content ?? '',
    toolCalls: (message.tool_calls ?? []).map((call) => {
      const { name, arguments: words } = call.function ?? {};
      return { id: call.id ?? '', type: 'function', function: { name: name ?? '', arguments: words ?? '' } };
    }),
    finishReason: choice.finish_reason ?? '',
    usage: usageOf(raw.usage),
    choices: choices.length,
    modelAtStart: modelOf(raw) ?? '',
    modelAtEnd: modelOf(raw) ?? '',
  };
}

/** Anything else, and parts of any other kind, are no text of the answer: thoughts least of all. */
function textOf(content: unknown): string {
  if (typeof content === 'string') return content;
  if (!Array.isArray(content)) return '';
  const parts = content.filter(isJsonObject).filter(({ type }) => type === 'text');
  return parts.map(({ text }) => (typeof text === 'string' ? text : '')).join('');
}

function modelOf({ model }: RawObject): string | undefined {
  return typeof model === 'string' ? model : undefined;
}

/** Hosts count in ways of their own: some tell of the cache's tokens beside the prompt's, some of thoughts in the total alone. */
function usageOf(usage: WireUsage | null | undefined): TokenUsage | undefined {
  if (usage === undefined || usage === null) return undefined;
  const cached = usage.prompt_tokens_details?.cached_tokens ?? usage.prompt_cache_hit_tokens ?? undefined;
  const [told, cachedTokens] = [countOf(usage.prompt_tokens), countOf(cached)];
  const promptTokens = cachedTokens > told ? told + cachedTokens : told;
  const rest = promptTokens === 0 ? 0 : countOf(usage.total_tokens) - promptTokens;
  const counts = { promptTokens, completionTokens: Math.max(countOf(usage.completion_tokens), rest) };
  return cached === undefined ? counts : { ...counts, cachedTokens };
}

/** Of anything else nothing can be counted. */
function countOf(told: unknown): number {
  return Number.isSafeInteger(told) && Number(told) > 0 ? Number(told) : 0;
}
