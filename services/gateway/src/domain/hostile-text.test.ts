import { growth, hostileTexts } from '@backtalk/kit/testing';
import { describe, expect, it } from 'vitest';
import { answerKey, answerKeysOf, answersIn } from './answer-key.js';
import { readChatRequest, type ChatMessage } from './chat-request.js';
import { readFeedback } from './feedback.js';
import { foreignSign } from './foreign-request.js';
import { readMessages } from './messages-request.js';
import { turnOfSession } from './session-name.js';

const calling = (text: string) => [{ id: 'a', type: 'function', function: { name: text, arguments: text } }];
const answered = (message: Record<string, unknown>): ChatMessage[] => [
  { role: 'user', content: 'a' },
  { role: 'assistant', content: null, ...message },
];
const read = (message: Record<string, unknown>) =>
  readChatRequest(
    { model: 'm', messages: [{ role: 'user', content: 'a', ...message }] },
    { messagesMax: 2_000, temperature: 1 },
  );
const asMessages = (messages: readonly unknown[], more: object = {}) =>
  readMessages({ model: 'm', max_tokens: 1, messages, ...more }, 1_000_000);
const asked = { role: 'user', content: 'a' };
/** What is read is read in time, and so is what is refused. */
const orRefused = (reader: (text: string) => unknown) => (text: string) => {
  try {
    return reader(text);
  } catch (error) {
    return error;
  }
};

const readers: readonly (readonly [string, (text: string) => unknown])[] = [
  ['answerKey', (text) => answerKey('secret', { text, toolCalls: calling(text) })],
  ['answerKeysOf an answer', (text) => answerKeysOf('secret', answersIn(answered({ content: text })))],
  ['answerKeysOf parts', (text) => answerKeysOf('secret', answersIn(answered({ content: [{ type: 'text', text }] })))],
  ['answerKeysOf a call', (text) => answerKeysOf('secret', answersIn(answered({ tool_calls: calling(text) })))],
  [
    'answerKeysOf half a budget',
    (text) => answerKeysOf('secret', answersIn(answered({ content: text.slice(-Math.floor(text.length / 3)) }))),
  ],
  [
    'answerKeysOf half a call',
    (text) =>
      answerKeysOf('secret', answersIn(answered({ tool_calls: calling(text.slice(-Math.floor(text.length / 5))) }))),
  ],
  ['foreignSign of a Host', (text) => foreignSign({ host: text })],
  ['foreignSign of an Origin', (text) => foreignSign({ host: 'localhost', origin: `http://${text}` })],
  ['readChatRequest of words', (text) => read({ content: text })],
  ['readChatRequest of a role', (text) => read({ role: text })],
  ['readChatRequest of a field', (text) => read({ [text]: text })],
  ['readMessages of words', (text) => asMessages([{ role: 'user', content: text }], { system: text })],
  ['readMessages of a reminder', (text) => asMessages([asked, { role: 'system', content: text }])],
  ['readMessages of a person', (text) => asMessages([asked], { metadata: { user_id: text } })],
  [
    'readMessages of a call',
    (text) =>
      asMessages([
        asked,
        { role: 'assistant', content: [{ type: 'tool_use', id: text, name: text, input: { [text]: text } }] },
        { role: 'user', content: [{ type: 'tool_result', tool_use_id: text, content: text }] },
      ]),
  ],
  [
    'readMessages of many messages',
    (text) => asMessages(Array.from({ length: text.length / 50 }, (_, at) => ({ role: 'user', content: `a${at}` }))),
  ],
  [
    'readMessages of many blocks',
    (text) =>
      asMessages([
        { role: 'user', content: Array.from({ length: text.length / 50 }, () => ({ type: 'text', text: 'a' })) },
      ]),
  ],
  ['readFeedback', (text) => readFeedback({ turn_id: text, comment: text })],
  ['turnOfSession', turnOfSession],
];

describe('a megabyte that was written to stall its reader', () => {
  it.each(readers)('%s does work in proportion to the length of any text', (_name, reader) => {
    for (const [piece, make] of hostileTexts)
      expect(growth(orRefused(reader), make), JSON.stringify(piece)).toBeLessThan(4);
  });
});
