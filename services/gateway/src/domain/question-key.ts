// By what are two conversations told apart in which the same answer was given? By what was said just before it.
//
// In: the messages of a request. Out: a keyed hash of what was said before each of its newest answers and, last, before the
// answer that it asks for: a person's words without what their client puts around them, or else a text as it came. Empty
// where nothing was said. Pure.
import { createHash } from 'node:crypto';
import { isJsonObject, keyedHash, personWords } from '@backtalk/kit/pure';
import type { ChatMessage } from './chat-request.js';
import { lookedUpKeysMax } from './continuation.js';

const questionKeyLength = 32;
/** Of a longer text its end is read, however long it is. */
const charactersMax = 2_048;
/** Longer words are handed on as their digest. */
const plainCharactersMax = 64;

/** What keys are made of: one for each of the newest assistant messages, oldest first, and one more. */
export function questionsIn(messages: readonly ChatMessage[]): string[] {
  const before: (ChatMessage | undefined)[] = [];
  let said: ChatMessage | undefined;
  for (const message of messages) {
    if (message.role !== 'assistant') said = message;
    else {
      before.push(said);
      said = undefined;
    }
  }
  return [...before.slice(-lookedUpKeysMax), said].map(questionOf);
}

export function questionKeysOf(secret: string, questions: readonly string[]): string[] {
  return questions.map((text) => (text === '' ? '' : keyedHash(secret, `question\n${text}`, questionKeyLength)));
}

function questionOf(message: ChatMessage | undefined): string {
  const content = message?.['content'];
  const parts: readonly unknown[] = Array.isArray(content) ? content : [{ text: content }];
  const texts = parts.flatMap((part) => (isJsonObject(part) && typeof part['text'] === 'string' ? [part['text']] : []));
  const ends = texts.map((text) => text.slice(-charactersMax));
  const said = message?.role === 'user' ? ends.findLast((end) => personWords(end) !== '') : undefined;
  const words = (said === undefined ? (ends.at(-1) ?? '') : personWords(said)).replace(/\s+/g, '');
  return words.length > plainCharactersMax ? createHash('sha256').update(words).digest('base64') : words;
}
