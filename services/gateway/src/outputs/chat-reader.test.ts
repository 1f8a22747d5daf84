import { isBacktalkError, systemClock } from '@backtalk/kit';
import { FakeClock } from '@backtalk/kit/testing';
import { afterAll, expect, it } from 'vitest';
import { readChat, type ChatRequest } from '../domain/chat-request.js';
import { ChatReader, readerHeapMebibytes } from './chat-reader.js';

const rules = { messagesMax: 2_000, temperature: 0.8, api: 'chat' } as const;
const reader = new ChatReader(systemClock, readerHeapMebibytes);
afterAll(() => reader.stop());

const mebibyte = 2 ** 20;
/** As many as a body may have: it is read beside the event loop, whatever its size. */
const members = 50_000;
const read = (body: string | Buffer, by = reader) =>
  by.read({ bytes: Buffer.concat([Buffer.from(body)]), members }, rules);
const lines = (count: number, line: (index: number) => string): string =>
  Array.from({ length: count }, (_, index) => line(index)).join(',');
const withTools = (parameters: string): string =>
  `{"model":"backtalk","messages":[{"role":"user","content":"hi"}],"tools":[{"type":"function","function":{"parameters":${parameters}}}]}`;
const asResponses = { ...rules, api: 'responses' } as const;
const withMessages = (messages: readonly unknown[]): string => JSON.stringify({ model: 'backtalk', messages });

/** With its bytes as text. */
function readable(request: ChatRequest): unknown {
  const { messages, tools, templateArguments, writtenFields, ...rest } = request;
  const text = (bytes: Uint8Array) => Buffer.from(bytes).toString();
  const written = Object.entries(writtenFields).map(([name, json]) => [name, text(json)]);
  return {
    ...rest,
    written,
    tools: text(tools),
    templateArguments: text(templateArguments),
    messages: { ...messages, json: text(messages.json) },
  };
}

/** All that is copied on the event loop when a request is handed over: its members, and the characters of its texts. */
function copied(value: unknown): { readonly members: number; readonly characters: number } {
  if (typeof value === 'string') return { members: 1, characters: value.length };
  if (typeof value !== 'object' || value === null || ArrayBuffer.isView(value)) return { members: 1, characters: 0 };
  const within = Object.entries(value).map(([name, member]) => [name.length, copied(member)] as const);
  return {
    members: within.reduce((sum, [, each]) => sum + each.members, 1),
    characters: within.reduce((sum, [name, each]) => sum + name + each.characters, 0),
  };
}

it('a body is read in the thread as it is read without one', async () => {
  const body = {
    model: 'backtalk',
    messages: [
      { role: 'user', content: 'é \ud83d' },
      { role: 'assistant', content: 'Hi', tool_calls: [{ function: { name: 'f', arguments: '{"b":1, "a":2}' } }] },
      { role: 'user', content: [{ type: 'text', text: 'x'.repeat(10_000) }], ['__proto__']: { b: {} } },
    ],
    tools: [{ type: 'function', function: { name: 'f', parameters: {} } }],
    chat_template_kwargs: { enable_thinking: false },
    stream: true,
    stream_options: { include_usage: true },
    session_id: 'mine',
    user: 'ann',
    max_tokens: 4,
    stop: ['y'.repeat(400)],
    metadata: { a: 'z'.repeat(9_000) },
  };
  const bytes = Buffer.from(JSON.stringify(body));
  expect(readable(await read(bytes))).toEqual(readable(readChat(bytes, rules)));
});

it('a request of the Responses API is read beside the event loop as it is on it', async () => {
  const body = Buffer.from(
    JSON.stringify({ model: 'm', input: [{ role: 'user', content: 'Hi' }], max_output_tokens: 5 }),
  );
  const beside = await reader.read({ bytes: Buffer.concat([body]), members }, asResponses);
  expect(readable(beside)).toEqual(readable(readChat(body, asResponses)));
  expect(beside.repeated).toMatchObject({ max_output_tokens: 5 });
});

it.each([
  '{"model":',
  Buffer.from([0x22, 0xff, 0x22]),
  '{"model":"backtalk","messages":[{"role":"robot"}]}',
  '{"rid":1}',
  '[]',
])('a body is refused in the thread as it is refused without one: %j', async (body) => {
  const refusal = await read(body).catch((error: unknown) => error);
  let expected: unknown;
  try {
    readChat(Buffer.from(body), rules);
  } catch (error) {
    expected = error;
  }
  expect(isBacktalkError(refusal)).toBe(true);
  expect(refusal).toEqual(expected);
  expect(refusal).toMatchObject({ status: 400, detail: (expected as { detail: unknown }).detail });
});

it.each([
  ['tools', withTools(`{${lines(48_000, (index) => `"k${index}${'y'.repeat(130)}":${index}.5`)}}`)],
  ['one text', withMessages([{ role: 'user', content: 'x'.repeat(7 * mebibyte) }])],
  ['parts', withMessages([{ role: 'user', content: Array(16_000).fill({ type: 'text', text: 'x'.repeat(400) }) }])],
  ['messages', withMessages(Array(2_000).fill({ role: 'assistant', content: 'x'.repeat(4_000) }))],
  [
    'other fields',
    `{"model":"backtalk","messages":[{"role":"user","content":""}],"metadata":{${lines(40_000, (index) => `"k${index}":{}`)}}}`,
  ],
])('a body with large %s is handed over as bytes, and as nothing else that is large', async (_, body) => {
  const { members: objects, characters } = copied(await read(body));
  expect(objects).toBeLessThan(5_000);
  // The answers in it, whose keys are made of them.
  expect(characters).toBeLessThan(0.6 * mebibyte);
});

const withInput = (input: unknown, more: object = {}): string => JSON.stringify({ model: 'backtalk', input, ...more });

it.each([
  ['tools', withInput('Hi', { tools: Array(40_000).fill({ type: 'function', name: 'f' }) })],
  ['instructions', withInput('Hi', { instructions: 'x'.repeat(7 * mebibyte) })],
  ['parts', withInput([{ role: 'user', content: Array(16_000).fill({ type: 'input_text', text: 'x'.repeat(400) }) }])],
  ['items', withInput(Array(1_900).fill({ role: 'assistant', content: 'x'.repeat(4_000) }))],
  [
    'calls',
    withInput(Array(1_900).fill({ type: 'function_call', call_id: 'c', name: 'f', arguments: 'x'.repeat(4_000) })),
  ],
])(
  'a large body of the Responses API with %s is read in three quarters of the heap, and handed over as bytes',
  async (_, body) => {
    const tight = new ChatReader(systemClock, (readerHeapMebibytes * 3) / 4);
    const request = await tight.read({ bytes: Buffer.concat([Buffer.from(body)]), members }, asResponses);
    const { members: objects, characters } = copied(request);
    expect(objects).toBeLessThan(5_000);
    expect(characters).toBeLessThan(0.6 * mebibyte);
    tight.stop();
  },
);

it('a body is read beside the event loop from so many bytes on, and from so many members on', async () => {
  const seen = new Set<number>();
  const small = withMessages([{ role: 'user', content: 'hi' }]);
  const bytes = Buffer.concat([Buffer.from(small)]);
  await reader.read({ bytes, members: 10_000 }, rules);
  seen.add(bytes.length);
  await reader.read({ bytes, members: 10_001 }, rules);
  seen.add(bytes.length);
  const large = Buffer.concat([Buffer.from(small), Buffer.alloc(mebibyte, ' ')]);
  await reader.read({ bytes: large, members: 0 }, rules);
  seen.add(large.length);
  // What the thread was given is no longer here.
  expect([...seen]).toEqual([small.length, 0]);
});

it('the event loop turns while a large body is read', async () => {
  const turnsDuring = async (body: string): Promise<number> => {
    const reading = read(body);
    let isOver = false;
    void reading.finally(() => (isOver = true));
    for (let turns = 0; ; turns += 1) {
      if (isOver) return turns;
      await new Promise(setImmediate);
    }
  };
  await turnsDuring(withMessages([{ role: 'user', content: 'hi' }]));
  expect(await turnsDuring(withTools(`[${lines(400_000, (index) => `"é${index}"`)}]`))).toBeGreaterThan(20);
});

// Over its heap, Node ends a thread by an error most of the time, and the process now and then.
it('the costliest bodies that pass the bounds are read in three quarters of the thread’s heap', async () => {
  const bytes = 8 * mebibyte;
  const tight = new ChatReader(systemClock, (readerHeapMebibytes * 3) / 4);
  const said = (text: string): string => `{"model":"backtalk","messages":[{"role":"user","content":${text}}]}`;
  const costly = [
    withTools(`[${lines(3_300, (row) => `{${lines(29, (index) => `"k${row}_${index}":1`)}}`)}]`),
    withTools(`{${lines(99_000, (index) => `"k${index}${'y'.repeat(60)}":${index}.5`)}}`),
    withTools(`[${lines(49_000, (index) => `{"k${index}${'x'.repeat(140)}":"é${index}"}`)}]`),
    withMessages(Array(2_000).fill({ role: 'assistant', content: `é${'x'.repeat(4_100)}` })),
    said(`"${'x'.repeat(bytes - 100)}😀"`),
    said(`"${'\\u00e9'.repeat(bytes / 6 - 100)}"`),
    said(`"${'\\u0001'.repeat(bytes / 6 - 100)}"`),
    said(`"${'\\ud83d'.repeat(bytes / 6 - 100)}"`),
  ];
  for (const body of costly) expect((await read(body, tight)).model).toBe('backtalk');
  tight.stop();
});

it('a body that takes too long is given up, and the next one is read', async () => {
  const clock = new FakeClock();
  const slow = new ChatReader(clock, readerHeapMebibytes);
  const given = read(withTools(`[${'1,'.repeat(3_000_000)}1]`), slow);
  await Promise.all([expect(given).rejects.toThrow('All places are taken'), clock.advance(5_000)]);
  expect((await read(withMessages([{ role: 'user', content: 'hi' }]), slow)).model).toBe('backtalk');
  slow.stop();
});
