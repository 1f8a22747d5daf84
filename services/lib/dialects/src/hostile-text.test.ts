import { growth, hostileTexts } from '@backtalk/kit/testing';
import { describe, expect, it } from 'vitest';
import { parseChat } from './openai/chat-wire.js';
import { completionChoices } from './openai/completions.js';
import { errorIn, refusalInStream, refusalOf, type CallContext } from './openai/refusals.js';
import { SseData } from './transport/sse-data.js';

const context: CallContext = { dialect: 'vllm', model: 'm', path: '/v1/chat/completions' };
const reply = (status: number, text: string) => ({ status, headers: {}, text });
const inError = (message: string) => JSON.stringify({ error: { message, param: message, code: 400 } });
/** What is read is read in time, and so is what is refused. */
const orRefused = (reader: (text: string) => unknown) => (text: string) => {
  try {
    return reader(text);
  } catch (error) {
    return error;
  }
};

function inChunks(text: string): string[] {
  const found: string[] = [];
  const data = new SseData();
  const bytes = Buffer.from(`data: ${text}\n\n`);
  for (let at = 0; at < bytes.length; at += 1_024) data.feed(bytes.subarray(at, at + 1_024), (one) => found.push(one));
  return found;
}

const readers: readonly (readonly [string, (text: string) => unknown])[] = [
  ['a refusal', (text) => refusalOf(reply(400, text), context)],
  ['the message of a refusal', (text) => refusalOf(reply(400, inError(text)), context)],
  ['the length in a refusal', (text) => refusalOf(reply(400, inError(`maximum context length is ${text}`)), context)],
  ['a refusal in a stream', (text) => refusalInStream({ message: text, type: text, param: text, code: 400 }, context)],
  ['an error', (text) => errorIn(text)],
  ['an answer', (text) => parseChat(text)],
  ['an answer with these words', (text) => parseChat(JSON.stringify({ choices: [{ delta: { content: text } }] }))],
  ['completions', (text) => completionChoices(text)],
  ['a stream', inChunks],
  ['a stream of short lines', (text) => inChunks(text.replaceAll('a', '\n'))],
];

describe('a megabyte of an engine that was made to stall its reader', () => {
  it.each(readers)('%s is read with work in proportion to its length', (_name, reader) => {
    for (const [piece, make] of hostileTexts)
      expect(growth(orRefused(reader), make), JSON.stringify(piece)).toBeLessThan(4);
  });
});
