// By what is an answer of ours known again when it comes back in a later request?
//
// In: an answer, or an assistant message of a request. Out: a keyed hash of its text without thoughts and white space,
// and of its tool calls as (name, canonical arguments) without ids: agents rewrite ids, spacing and thoughts, but not
// these. Empty for an answer that says nothing, because all of those would be alike. Pure.
import { isJsonObject, JsonScan, keyedHash } from '@backtalk/kit/pure';
import type { ChatMessage } from './chat-request.js';

const answerKeyLength = 32;

interface AnswerContent {
  readonly text: string;
  readonly toolCalls: readonly unknown[];
}

interface SpelledAnswer {
  /** What its key is made of. Empty for an answer that says nothing, or costs more than it may. */
  readonly text: string;
  /** As characters of text. */
  readonly cost: number;
}

/** Older answers have no key here: the collector and this gateway look for no more than the newest few. */
const keyedAnswersMax = 64;
/** Of those, newest first, so much is hashed: 10 ms of a processor (25 ms where arguments come as an object), and no request of 100,000 tokens has more. */
const costMax = 512 * 1024;
/** A member of a call's arguments is parsed, put in order and written again in the time of so many characters; so is a call. */
const memberCost = 48;
/** What is nested deeper is no arguments, and hashed as a text. */
const depthMax = 100;

export function answerKey(secret: string, answer: AnswerContent): string {
  return keyOf(secret, spelledWithin(costMax, answer).text);
}

/**
 * What a key is made of, for every assistant message, oldest first, so that its position gives the message. Empty for those
 * that are too far back, or too long, to be looked for.
 */
export function answersIn(messages: readonly ChatMessage[]): string[] {
  const answers = messages.filter((message) => message.role === 'assistant');
  const texts = answers.map(() => '');
  let left = costMax;
  for (let index = answers.length - 1; index >= Math.max(0, answers.length - keyedAnswersMax); index -= 1) {
    const answer = answers[index];
    if (answer === undefined) break;
    const { text, cost } = spelledWithin(left, contentOf(answer));
    left -= cost;
    if (left < 0) break;
    texts[index] = text;
  }
  return texts;
}

export function answerKeysOf(secret: string, answers: readonly string[]): string[] {
  return answers.map((text) => keyOf(secret, text));
}

function keyOf(secret: string, text: string): string {
  return text === '' ? '' : keyedHash(secret, text, answerKeyLength);
}

/** Nothing is parsed, and no text is read, before it is known to fit what is left. */
function spelledWithin(left: number, { text, toolCalls }: AnswerContent): SpelledAnswer {
  let cost = text.length + memberCost * toolCalls.length;
  const calls: (readonly [string, string])[] = [];
  for (const call of cost > left ? [] : toolCalls) {
    const { name, given } = calledIn(call);
    cost += name.length + given.length;
    if (cost > left) break;
    const scan = new JsonScan({ bytesMax: Infinity, membersMax: (left - cost) / memberCost, depthMax });
    const excess = scan.add(Buffer.from(given));
    if (excess === 'members') return { text: '', cost: Infinity };
    cost += memberCost * scan.membersSeen;
    calls.push([name, excess === undefined ? canonicalArguments(given) : withoutSpace(given)]);
  }
  if (cost > left) return { text: '', cost };
  const bare = bareText(text);
  return { text: bare === '' && calls.length === 0 ? '' : JSON.stringify([bare, calls]), cost };
}

function bareText(text: string): string {
  // Templates that open the thought themselves leave only its end in the answer.
  const closed = text.includes('<think>') ? text.replace(/<think>[\s\S]*?(<\/think>|$)/g, '') : text;
  const end = closed.lastIndexOf('</think>');
  return withoutSpace(end === -1 ? closed : closed.slice(end + '</think>'.length));
}

function contentOf(message: ChatMessage): AnswerContent {
  const content = message['content'];
  const calls = message['tool_calls'];
  const toolCalls = Array.isArray(calls) ? calls : [];
  if (!Array.isArray(content)) return { text: wordsOf(content), toolCalls };
  const text = content.map((part: unknown) => (isJsonObject(part) ? wordsOf(part['text']) : '')).join('');
  return { text, toolCalls };
}

function calledIn(call: unknown): { readonly name: string; readonly given: string } {
  const called = isJsonObject(call) && isJsonObject(call['function']) ? call['function'] : {};
  const given = called['arguments'];
  return { name: wordsOf(called['name']), given: typeof given === 'string' ? given : JSON.stringify(given ?? {}) };
}

function canonicalArguments(given: string): string {
  try {
    return canonicalJson(given.trim() === '' ? {} : JSON.parse(given));
  } catch {
    // A model may write arguments that are no JSON; clients send them back as they are.
    return withoutSpace(given);
  }
}

function withoutSpace(text: string): string {
  return text.replace(/\s+/g, '');
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
