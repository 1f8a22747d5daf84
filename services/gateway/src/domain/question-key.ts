// By what are two conversations told apart in which the same answer was given? By what was said just before it.
//
// In: the messages of a request. Out: a keyed hash of what was said before each of its newest answers and, last, before the
// answer that it asks for: a person's words without what their client puts around them, or else a text as it came. Empty
// where nothing was said, or too far back. Pure.
import { isJsonObject, keyedHash, personWords } from '@backtalk/kit/pure';
import type { ChatMessage } from './chat-request.js';
import { lookedUpKeysMax } from './continuation.js';

const questionKeyLength = 32;
/** Of a longer text its end is read, however long it is. */
const charactersMax = 2_048;

/** What keys are made of: one for each assistant message, oldest first, and one more. */
export function questionsIn(messages: readonly ChatMessage[]): string[] {
  const questions: string[] = [];
  let before: ChatMessage | undefined;
  const answers = messages.reduce((count, { role }) => count + (role === 'assistant' ? 1 : 0), 0);
  for (const message of messages) {
    if (message.role !== 'assistant') before = message;
    else {
      questions.push(questions.length < answers - lookedUpKeysMax ? '' : questionOf(before));
      before = undefined;
    }
  }
  return [...questions, questionOf(before)];
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
  return (said === undefined ? (ends.at(-1) ?? '') : personWords(said)).replace(/\s+/g, '');
}
