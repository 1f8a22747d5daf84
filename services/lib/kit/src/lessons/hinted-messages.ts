// A request's messages as the teacher is shown them: with the hints of the sample at the end of what a person wrote last, or of the
// system message. Which hints: those that quote no token of the model's template, because one would begin a message of its own. Pure.
import type { ShownLessons } from '@backtalk/proto/facts';
import { isJsonObject, type JsonObject } from '../json/json-object.js';

/** @param controlTokens texts that the tokenizer takes for tokens of the template wherever they stand */
export function harmlessHints(hints: readonly string[], controlTokens: readonly string[]): string[] {
  return hints.filter((hint) => !controlTokens.some((token) => token !== '' && hint.includes(token)));
}

/**
 * Each hint after a blank line. Without a system message one is put first.
 *
 * @param place "human" or "system"
 * @param humanMessage index of the last message that a person wrote; -1: the last user message
 * @returns nothing where there is no message to append to
 */
export function hintedMessages(
  messages: readonly unknown[],
  hints: readonly string[],
  place: string,
  humanMessage: number,
): readonly unknown[] | undefined {
  const text = hints.map((hint) => hint.trim()).join('\n\n');
  if (place === 'system' && !isOf(messages[0], 'system', 'developer'))
    return [{ role: 'system', content: text }, ...messages];
  const last = humanMessage >= 0 ? humanMessage : messages.findLastIndex((message) => isOf(message, 'user'));
  const index = place === 'system' ? 0 : last;
  const message = messages[index];
  return isJsonObject(message) ? messages.with(index, appended(message, text)) : undefined;
}

/** As the gateway asked an engine, from what it wrote down of that. */
export function withLessons(
  messages: readonly unknown[],
  { lessons, message }: ShownLessons,
): readonly unknown[] | undefined {
  return hintedMessages(
    messages,
    lessons.map(({ text }) => text),
    'human',
    message,
  );
}

function isOf(message: unknown, ...roles: readonly string[]): boolean {
  return isJsonObject(message) && roles.includes(String(message['role']));
}

/** Content is a text, or a list of parts: then the last text part grows, or one is added. */
function appended(message: JsonObject, text: string): JsonObject {
  const content: unknown = message['content'];
  if (!Array.isArray(content))
    return { ...message, content: typeof content === 'string' && content !== '' ? `${content}\n\n${text}` : text };
  const parts: readonly unknown[] = content;
  const at = parts.findLastIndex((part) => isJsonObject(part) && part['type'] === 'text');
  const part = parts[at];
  if (!isJsonObject(part)) return { ...message, content: [...parts, { type: 'text', text }] };
  const before: unknown = part['text'];
  const grown = typeof before === 'string' && before !== '' ? `${before}\n\n${text}` : text;
  return { ...message, content: parts.with(at, { ...part, text: grown }) };
}
