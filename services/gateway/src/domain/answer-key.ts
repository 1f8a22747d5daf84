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
  // Templates that open the thought themselves leave only its end in the answer.
  const closed = text.includes('<think>') ? text.replace(/<think>[\s\S]*?(<\/think>|$)/g, '') : text;
  const end = closed.lastIndexOf('</think>');
  const bare = (end === -1 ? closed : closed.slice(end + '</think>'.length)).replace(/\s+/g, '');
  const calls = toolCalls.map(bareCall);
  if (bare === '' && calls.length === 0) return '';
  return keyedHash(secret, JSON.stringify([bare, calls]), answerKeyLength);
}

/** One key for every assistant message, oldest first, so that a key's position gives the message. */
export function answerKeysOf(secret: string, messages: readonly ChatMessage[]): string[] {
  return messages
    .filter((message) => message.role === 'assistant')
    .map((message) => {
      const content = message['content'];
      const parts = Array.isArray(content) ? content : [];
      const words = parts.map((part: unknown) => (isJsonObject(part) ? wordsOf(part['text']) : '')).join('');
      const calls = message['tool_calls'];
      return answerKey(secret, {
        text: typeof content === 'string' ? content : words,
        toolCalls: Array.isArray(calls) ? calls : [],
      });
    });
}

function bareCall(call: unknown): readonly [string, string] {
  const called = isJsonObject(call) && isJsonObject(call['function']) ? call['function'] : {};
  const name = wordsOf(called['name']);
  const given = called['arguments'];
  if (typeof given !== 'string') return [name, canonicalJson(given ?? {})];
  try {
    return [name, canonicalJson(given.trim() === '' ? {} : JSON.parse(given))];
  } catch {
    // A model may write arguments that are no JSON; clients send them back as they are.
    return [name, given.replace(/\s+/g, '')];
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
