// Anthropic's Messages API, as its SDK speaks it: what is captured, how answers come, and what continues what.
import Anthropic from '@anthropic-ai/sdk';
import { until } from '@backtalk/kit/testing';
import { afterAll, afterEach, beforeAll, expect, it } from 'vitest';
import { startConversing, type Conversing } from '../testing/started-gateway.js';

let conversing: Conversing;
let client: Anthropic;

beforeAll(async () => {
  conversing = await startConversing({ dialect: 'vllm' });
  const baseURL = conversing.started.url.replace(/\/v1$/, '');
  client = new Anthropic({ baseURL, apiKey: 'none needed', maxRetries: 0 });
});

afterEach(() => {
  conversing.leased.engine.settings.faults = {};
  conversing.leased.engine.settings.tokenMs = 0;
});

afterAll(() => conversing.stop());

const model = 'backtalk';
const max_tokens = 64;
const says = (content: string) => [{ role: 'user' as const, content }];

const opened = (turn: string) =>
  until(async () => (await conversing.around.reader.last('turnOpened', { turn }))?.message, { what: `Turn ${turn}` });
const completed = (turn: string) =>
  until(async () => (await conversing.around.reader.last('turnCompleted', { turn }))?.message, {
    what: `The answer of ${turn}`,
  });
const wordsOf = ({ content }: Anthropic.Message) =>
  content.map((block) => (block.type === 'text' ? block.text : '')).join('');

it('an answer of the Messages API is captured like any other, and names its turn', async () => {
  const { data, response } = await client.messages
    .create({ model, system: 'Be short.', messages: says('Hello'), max_tokens })
    .withResponse();
  expect(data).toMatchObject({ type: 'message', role: 'assistant', model, stop_reason: 'end_turn' });
  expect(response.headers.get('X-Backtalk-Turn')).toBe(data.id);
  const fact = await completed(data.id);
  expect(fact).toMatchObject({ text: wordsOf(data), trainable: true });
  const { input_tokens: unseen, cache_read_input_tokens: cached, output_tokens: output } = data.usage;
  expect([unseen + (cached ?? 0), output]).toEqual([fact.promptIds.length, fact.answerIds.length]);
});

it('a stream ends in the message that it built', async () => {
  let text = '';
  const stream = client.messages.stream({ model, messages: says('Hello again'), max_tokens });
  stream.on('text', (delta) => (text += delta));
  const message = await stream.finalMessage();
  expect(message.stop_reason).toBe('end_turn');
  expect(text).not.toBe('');
  expect(wordsOf(message)).toBe(text);
  const fact = await completed(message.id);
  expect(fact.text).toBe(text);
  expect(message.usage.output_tokens).toBe(fact.answerIds.length);
});

it('a request that holds an answer continues it, whichever API either came by', async () => {
  const question = { role: 'user' as const, content: 'Whose turn is it?' };
  const first = await client.messages.create({ model, messages: [question], max_tokens });
  const said = [
    question,
    { role: 'assistant' as const, content: first.content },
    { role: 'user' as const, content: 'Shorter, please.' },
  ];
  const second = await client.messages.create({ model, messages: said, max_tokens });
  expect((await opened(second.id)).provisionalParent).toBe(first.id);
  const third = await conversing.client.chat.completions.create({
    model,
    messages: [
      question,
      { role: 'assistant', content: wordsOf(first) },
      { role: 'user', content: 'Shorter, please.' },
      { role: 'assistant', content: wordsOf(second) },
      { role: 'user', content: 'Shorter still.' },
    ],
  });
  const { provisionalParent, provisionalSession } = await opened(third.id);
  expect(provisionalParent).toBe(second.id);
  expect(provisionalSession).toBe((await opened(first.id)).provisionalSession);
});

it('a call comes back as a block, streamed or not', async () => {
  const tools = [{ name: 'weather', input_schema: { type: 'object' as const, properties: {} } }];
  const asked = { model, messages: says('Rain?'), max_tokens, tools, tool_choice: { type: 'any' as const } };
  const called = { type: 'tool_use', name: 'weather', input: { city: 'Paris' } };
  const whole = await client.messages.create(asked);
  const streamed = await client.messages.stream(asked).finalMessage();
  for (const { content, stop_reason } of [whole, streamed]) {
    expect(content).toMatchObject([called]);
    expect(stop_reason).toBe('tool_use');
  }
});

it('a bound that no context holds is left to the engine, while the chat API is told', async () => {
  const heard: unknown[] = [];
  const { settings } = conversing.leased.engine;
  settings.heard = (body) => heard.push(body);
  const answer = await client.messages
    .stream({ model, messages: says('At any length'), max_tokens: 2 * settings.maxContext })
    .finalMessage();
  expect(answer.stop_reason).toBe('end_turn');
  expect(heard).toHaveLength(2);
  expect(heard[1]).not.toHaveProperty('max_completion_tokens');
  const asked = { model, messages: says('At any length'), max_completion_tokens: 2 * settings.maxContext };
  await expect(conversing.client.chat.completions.create(asked)).rejects.toMatchObject({
    code: 'context_length_exceeded',
  });
});

it('what is not had here is refused in the API’s own words, before an engine is asked', async () => {
  const before = conversing.leased.engine.counts.requests;
  const asked = { model, messages: says('Hello'), max_tokens };
  await expect(client.messages.create({ ...asked, container: 'c' })).rejects.toMatchObject({
    status: 400,
    error: {
      type: 'error',
      error: {
        type: 'invalid_request_error',
        message: "Unsupported parameter: 'container': nothing is run here.",
        details: { error_code: 'unsupported_parameter' },
      },
    },
  });
  await expect(client.messages.create({ ...asked, model: 'another' })).rejects.toMatchObject({
    status: 404,
    error: { error: { type: 'not_found_error' } },
  });
  expect(conversing.leased.engine.counts.requests).toBe(before);
});

it('a stream that breaks off ends in an error that the SDK throws', async () => {
  conversing.leased.engine.settings.faults = { dieAfterTokens: { tokens: 3, how: 'socket' } };
  conversing.leased.engine.settings.tokenMs = 20;
  const seen: string[] = [];
  const broken = async () => {
    for await (const { type } of await client.messages.create({
      model,
      messages: says('And now?'),
      max_tokens,
      stream: true,
    }))
      seen.push(type);
  };
  await expect(broken()).rejects.toMatchObject({ error: { error: { type: 'api_error' } } });
  expect(seen).toContain('content_block_delta');
  expect(seen).not.toContain('message_stop');
});

it('tokens are counted as an answer would be charged for them, tools included, and nothing is written down', async () => {
  const heard: unknown[] = [];
  const { settings } = conversing.leased.engine;
  settings.tokenizeHeard = (body) => heard.push(body);
  const messages = says('How long is this?');
  const system = 'Be short.';
  const tools = [{ name: 'weather', input_schema: { type: 'object' as const, properties: {} } }];
  const { data, response } = await client.messages.countTokens({ model, system, messages, tools }).withResponse();
  expect(response.headers.get('X-Backtalk-Turn')).toBeNull();
  const parameters = { type: 'object', properties: {} };
  expect(heard).toMatchObject([{ tools: [{ type: 'function', function: { name: 'weather', parameters } }] }]);
  const answer = await client.messages.create({ model, system, messages, max_tokens });
  const { input_tokens: unseen, cache_read_input_tokens: cached } = answer.usage;
  expect(data.input_tokens).toBe(unseen + (cached ?? 0));
  // An answer that the client began has a length, too.
  const begun = [...messages, { role: 'assistant' as const, content: 'It is' }];
  expect((await client.messages.countTokens({ model, messages: begun })).input_tokens).toBeGreaterThan(0);
});

it('what is too large to be counted in one piece is refused', async () => {
  const messages = says('x'.repeat(1024 * 1024));
  await expect(client.messages.countTokens({ model, messages })).rejects.toMatchObject({
    status: 413,
    error: { error: { type: 'request_too_large' } },
  });
});

it('what cannot be counted is refused as where it cannot be answered', async () => {
  const asked = { model, messages: says('How long?') };
  await expect(client.messages.countTokens({ ...asked, model: 'another' })).rejects.toMatchObject({
    status: 404,
    error: { error: { type: 'not_found_error' } },
  });
  const without = { model } as Anthropic.MessageCountTokensParams;
  await expect(client.messages.countTokens(without)).rejects.toMatchObject({
    status: 400,
    error: { error: { message: expect.stringContaining('messages') as string } },
  });
});

it('a service that counts nothing is no reason to try again', async () => {
  const plain = await startConversing({ dialect: 'openai' });
  try {
    const another = new Anthropic({ baseURL: plain.started.url.replace(/\/v1$/, ''), apiKey: 'none', maxRetries: 0 });
    await expect(another.messages.countTokens({ model, messages: says('How long?') })).rejects.toMatchObject({
      status: 404,
      error: { error: { type: 'not_found_error', details: { error_code: 'not_supported' } } },
    });
  } finally {
    await plain.stop();
  }
});
