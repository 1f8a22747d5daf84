// By what is an answer of ours known again when it comes back in a later request?
//
// In: an answer, or an assistant message of a request. Out: a keyed hash of its text without thoughts and white space,
// and of its tool calls as (name, canonical arguments) without ids: agents rewrite ids, spacing and thoughts, but not
// these. Empty for an answer that says nothing, because all of those would be alike. Pure.
import { isJsonObject, keyedHash } from '@backtalk/kit';
import type { ChatMessage } from './chat-request.js';

const answerKeyLength = 32;

interface AnswerContent {
  readonly text: string;
  readonly toolCalls: readonly unknown[];
}

export function answerKey(secret: string, { text, toolCalls }: AnswerContent): string {
  const bare = bareText(text);
  const calls = toolCalls.map(bareCall);
  if (bare === '' && calls.length === 0) return '';
  return keyedHash(secret, JSON.stringify([bare, calls]), answerKeyLength);
}

/** One key for every assistant message, oldest first, so that a key's position gives the message. */
export function answerKeysOf(secret: string, messages: readonly ChatMessage[]): string[] {
  return messages
    .filter((message) => message.role === 'assistant')
    .map((message) => answerKey(secret, contentOf(message)));
}

function contentOf(message: ChatMessage): AnswerContent {
  const calls = message['tool_calls'];
  return { text: textOf(message['content']), toolCalls: Array.isArray(calls) ? calls : [] };
}

function textOf(content: unknown): string {
  if (typeof content === 'string') return content;
  if (!Array.isArray(content)) return '';
  return content.map((part: unknown) => (isJsonObject(part) ? wordsOf(part['text']) : '')).join('');
}

/** Templates that open the thought themselves leave only its end in the answer. */
function bareText(text: string): string {
  const closed = text.includes('<think>') ? text.replace(/<think>[\s\S]*?(<\/think>|$)/g, '') : text;
  const end = closed.lastIndexOf('</think>');
  return (end === -1 ? closed : closed.slice(end + '</think>'.length)).replace(/\s+/g, '');
}

function bareCall(call: unknown): readonly [string, string] {
  const called = isJsonObject(call) && isJsonObject(call['function']) ? call['function'] : {};
  return [wordsOf(called['name']), bareArguments(called['arguments'])];
}

function bareArguments(value: unknown): string {
  if (typeof value !== 'string') return canonicalJson(value ?? {});
  try {
    return canonicalJson(value.trim() === '' ? {} : JSON.parse(value));
  } catch {
    // A model may write arguments that are no JSON; clients send them back as they are.
    return value.replace(/\s+/g, '');
  }
}

function wordsOf(value: unknown): string {
  return typeof value === 'string' ? value : '';
}

/** JSON with the keys of every object in order, so that equal values have equal text. */
function canonicalJson(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(canonicalJson).join(',')}]`;
  if (!isJsonObject(value)) return JSON.stringify(value) ?? 'null';
  const members = Object.keys(value)
    .sort()
    .map((key) => `${JSON.stringify(key)}:${canonicalJson(value[key])}`);
  return `{${members.join(',')}}`;
}
