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

/** Older answers have no key here: the collector and this gateway look for no more than the newest few. */
const keyedAnswersMax = 64;
/** Of those, newest first, so much is hashed: it takes 20 ms at most, and no request of 100,000 tokens has more. */
const keyedCharactersMax = 1024 * 1024;

/**
 * One key for every assistant message, oldest first, so that a key's position gives the message. Empty for those that
 * are too far back, or too long, to be looked for.
 */
export function answerKeysOf(secret: string, messages: readonly ChatMessage[]): string[] {
  const answers = messages.filter((message) => message.role === 'assistant').map(contentOf);
  const keys = answers.map(() => '');
  let left = keyedCharactersMax;
  for (let index = answers.length - 1; index >= Math.max(0, answers.length - keyedAnswersMax); index -= 1) {
    const answer = answers[index];
    if (answer === undefined) break;
    left -= lengthOf(answer);
    if (left < 0) break;
    keys[index] = answerKey(secret, answer);
  }
  return keys;
}

function contentOf(message: ChatMessage): AnswerContent {
  const content = message['content'];
  const calls = message['tool_calls'];
  const toolCalls = Array.isArray(calls) ? calls : [];
  if (!Array.isArray(content)) return { text: wordsOf(content), toolCalls };
  const text = content.map((part: unknown) => (isJsonObject(part) ? wordsOf(part['text']) : '')).join('');
  return { text, toolCalls };
}

/** Arguments that are no string are bounded with the request that they stand in. */
function lengthOf({ text, toolCalls }: AnswerContent): number {
  let length = text.length;
  for (const call of toolCalls) {
    const called = isJsonObject(call) ? call['function'] : undefined;
    if (isJsonObject(called)) length += wordsOf(called['name']).length + wordsOf(called['arguments']).length;
  }
  return length;
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
