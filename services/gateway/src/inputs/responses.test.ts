// OpenAI's Responses API, as its SDK speaks it: what is captured, how answers come, and what continues what.
import OpenAI from 'openai';
import type { ResponseInputItem } from 'openai/resources/responses/responses';
import { until } from '@backtalk/kit/testing';
import { afterAll, afterEach, beforeAll, expect, it } from 'vitest';
import { startConversing, type Conversing } from '../testing/started-gateway.js';

let conversing: Conversing;
let client: OpenAI;

beforeAll(async () => {
  conversing = await startConversing({ dialect: 'vllm' });
  ({ client } = conversing);
});

afterEach(() => {
  conversing.leased.engine.settings.faults = {};
  conversing.leased.engine.settings.tokenMs = 0;
});

afterAll(() => conversing.stop());

const model = 'backtalk';

const opened = (turn: string) =>
  until(async () => (await conversing.around.reader.last('turnOpened', { turn }))?.message, { what: `Turn ${turn}` });
const completed = (turn: string) =>
  until(async () => (await conversing.around.reader.last('turnCompleted', { turn }))?.message, {
    what: `The answer of ${turn}`,
  });

it('an answer of the Responses API is captured like any other, and names its turn', async () => {
  const { data, response } = await client.responses
    .create({ model, instructions: 'Be short.', input: 'Hello', max_output_tokens: 8 })
    .withResponse();
  expect(data).toMatchObject({ object: 'response', model, max_output_tokens: 8 });
  expect(response.headers.get('X-Backtalk-Turn')).toBe(data.id);
  const fact = await completed(data.id);
  expect(fact).toMatchObject({ text: data.output_text, trainable: true });
  expect(data.usage).toMatchObject({
    input_tokens: fact.promptIds.length,
    output_tokens: fact.answerIds.length,
  });
});

it('a stream ends in the response that it built', async () => {
  const stream = client.responses.stream({ model, input: 'Hello again' });
  let text = '';
  stream.on('response.output_text.delta', ({ delta }) => (text += delta));
  const response = await stream.finalResponse();
  expect(response.status).toBe('completed');
  expect(response.output_text).toBe(text);
  expect((await completed(response.id)).text).toBe(text);
});

it('a request that holds an answer continues it, whichever API either came by', async () => {
  const question = { role: 'user' as const, content: 'Whose turn is it?' };
  const first = await client.responses.create({ model, input: [question] });
  // What the SDK gives out it takes back, though its types say that some kinds differ.
  const answered = first.output as ResponseInputItem[];
  const said: ResponseInputItem[] = [question, ...answered, { role: 'user', content: 'Shorter, please.' }];
  const second = await client.responses.create({ model, input: said });
  expect((await opened(second.id)).provisionalParent).toBe(first.id);
  const third = await client.chat.completions.create({
    model,
    messages: [
      question,
      { role: 'assistant', content: first.output_text },
      { role: 'user', content: 'Shorter, please.' },
      { role: 'assistant', content: second.output_text },
      { role: 'user', content: 'Shorter still.' },
    ],
  });
  const { provisionalParent, provisionalSession } = await opened(third.id);
  expect(provisionalParent).toBe(second.id);
  expect(provisionalSession).toBe((await opened(first.id)).provisionalSession);
});

it('what is not had here is refused by its name in the request, before an engine is asked', async () => {
  const before = conversing.leased.engine.counts.requests;
  await expect(client.responses.create({ model, input: 'Hello', conversation: 'conv_1' })).rejects.toMatchObject({
    status: 400,
    code: 'unsupported_parameter',
    param: 'conversation',
  });
  await expect(
    client.responses.create({ model, input: 'Hello', tools: [{ type: 'web_search' }] }),
  ).rejects.toMatchObject({ status: 400, code: 'unsupported_parameter', param: 'tools[0].type' });
  await expect(client.responses.create({ model: 'another', input: 'Hello' })).rejects.toMatchObject({ status: 404 });
  expect(conversing.leased.engine.counts.requests).toBe(before);
});

it('a stream that breaks off ends in an error that the SDK throws, and in no response', async () => {
  conversing.leased.engine.settings.faults = { dieAfterTokens: { tokens: 3, how: 'socket' } };
  conversing.leased.engine.settings.tokenMs = 20;
  const seen: string[] = [];
  const broken = async () => {
    for await (const { type } of await client.responses.create({ model, input: 'And now?', stream: true }))
      seen.push(type);
  };
  await expect(broken()).rejects.toMatchObject({ code: 'engine_failed' });
  expect(seen).toContain('response.output_text.delta');
  expect(seen.at(-1)).toBe('response.failed');
  expect(seen).not.toContain('response.completed');
});

it('an answer that the engine ended itself is a response that failed', async () => {
  conversing.leased.engine.settings.faults = { abortAfterTokens: 3 };
  const stream = await client.responses.create({ model, input: 'And then?', stream: true });
  let last = '';
  for await (const { type } of stream) last = type;
  expect(last).toBe('response.failed');
});

it('a response is gone on from by its id: all that was said before it is asked, learned from, and in the log', async () => {
  const heard: unknown[] = [];
  conversing.leased.engine.settings.heard = (body) => heard.push(body);
  const instructions = 'Be short.';
  const first = await client.responses.create({ model, instructions, input: 'Where does the Rhine begin?' });
  const more = { model, instructions, input: 'And where does it end?', previous_response_id: first.id };
  const second = await client.responses.create(more);
  expect(second.previous_response_id).toBe(first.id);
  const stream = client.responses.stream({ model, input: 'How long is it?', previous_response_id: second.id });
  const third = await stream.finalResponse();
  expect(third.previous_response_id).toBe(second.id);
  expect(heard.at(-1)).toMatchObject({
    messages: [
      { role: 'system', content: instructions },
      { role: 'user', content: 'Where does the Rhine begin?' },
      { role: 'assistant', content: first.output_text },
      { role: 'user', content: more.input },
      { role: 'assistant', content: second.output_text },
      { role: 'user', content: 'How long is it?' },
    ],
  });
  expect(heard.at(-1)).not.toHaveProperty('previous_response_id');
  const facts = await Promise.all([first, second, third].map(({ id }) => opened(id)));
  expect(facts.map(({ provisionalParent }) => provisionalParent)).toEqual(['', first.id, second.id]);
  expect(new Set(facts.map(({ provisionalSession }) => provisionalSession)).size).toBe(1);
  expect(await completed(third.id)).toMatchObject({ trainable: true });
});

it('an answer of the chat API and its call are gone on from by their id, too', async () => {
  const heard: unknown[] = [];
  conversing.leased.engine.settings.heard = (body) => heard.push(body);
  const weather = { name: 'weather', parameters: { type: 'object', properties: {} } };
  const first = await client.chat.completions.create({
    model,
    messages: [{ role: 'user', content: 'Rain?' }],
    tools: [{ type: 'function', function: weather }],
    tool_choice: 'required',
  });
  const [call] = first.choices[0]?.message.tool_calls ?? [];
  const output = { type: 'function_call_output' as const, call_id: call?.id ?? '', output: 'No.' };
  await client.responses.create({ model, input: [output], previous_response_id: first.id });
  expect(heard.at(-1)).toMatchObject({
    messages: [
      { role: 'user', content: 'Rain?' },
      { role: 'assistant', tool_calls: [{ id: call?.id, function: { name: 'weather' } }] },
      { role: 'tool', tool_call_id: call?.id, content: 'No.' },
    ],
  });
});

it('a "no" goes on with what follows by an id, also where the answer said nothing', async () => {
  conversing.leased.engine.settings.faults = { failStatus: 500 };
  const headers = { 'X-Backtalk-Train': 'off' };
  const failed: unknown = await client.responses
    .create({ model, input: 'Keep this to yourself.' }, { headers })
    .catch((error: unknown) => error);
  expect(failed).toBeInstanceOf(OpenAI.APIError);
  const first = (failed as InstanceType<typeof OpenAI.APIError>).headers?.get('X-Backtalk-Turn') ?? '';
  expect((await completed(first)).text).toBe('');
  conversing.leased.engine.settings.faults = {};
  const follow = { model, input: 'Are you there?', previous_response_id: first };
  const { id } = await client.responses.create(follow);
  expect(await opened(id)).toMatchObject({ consent: { train: false, source: 'session' } });
  expect((await completed(id)).untrainableReasons).toContain('opted_out');
});

it('items of answers are named by their ids, as clients do that take them for kept', async () => {
  const heard: unknown[] = [];
  conversing.leased.engine.settings.heard = (body) => heard.push(body);
  const question = { role: 'user' as const, content: 'Where does the Elbe begin?' };
  const first = await client.responses.create({ model, input: [question] });
  const refer = (id = '') => ({ type: 'item_reference' as const, id });
  const more = { role: 'user' as const, content: 'And where does it end?' };
  const second = await client.responses.create({ model, input: [question, refer(first.output[0]?.id), more] });
  const said = { role: 'assistant', content: first.output_text };
  expect(heard.at(-1)).toMatchObject({ messages: [question, said, more] });
  expect((await opened(second.id)).provisionalParent).toBe(first.id);
  const unknown = client.responses.create({ model, input: [question, refer('msg_1_0'), more] });
  await expect(unknown).rejects.toMatchObject({ status: 400, code: 'item_not_found', param: 'input[1].id' });
});

it('an answer that is not there, or too long to go on from, is said to be so', async () => {
  const input = 'Hello';
  const missing = { status: 400, code: 'previous_response_not_found', param: 'previous_response_id' };
  for (const previous_response_id of ['turn_1', 'resp_68', '*', 'turn_>', 'turn_*', 'turn_1.*'])
    await expect(client.responses.create({ model, input, previous_response_id })).rejects.toMatchObject(missing);
  const saidAfter = async (characters: number, more: number) => {
    const { id } = await client.responses.create({ model, input: 'x'.repeat(characters) });
    return client.responses.create({ model, input: 'x'.repeat(more), previous_response_id: id });
  };
  const mebibyte = 1024 * 1024;
  // Read beside the event loop: the request, or both together.
  for (const [before, now] of [
    [10, 2 * mebibyte],
    [0.7 * mebibyte, 0.7 * mebibyte],
  ] as const)
    expect((await saidAfter(before, now)).status).toBe('completed');
  await expect(saidAfter(mebibyte, 10)).rejects.toMatchObject({ status: 413, code: 'request_too_large' });
});
