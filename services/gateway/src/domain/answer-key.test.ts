import { describe, expect, it, vi } from 'vitest';
import { answerKey, answerKeysOf, answersIn } from './answer-key.js';
import type { ChatMessage } from './chat-request.js';

const secret = 's'.repeat(32);
const call = (name: string, args: string, id = 'call_1') => ({
  id,
  type: 'function',
  function: { name, arguments: args },
});
const keysOf = (messages: readonly ChatMessage[]) => answerKeysOf(secret, answersIn(messages));
const key = (text: string, ...toolCalls: unknown[]) => answerKey(secret, { text, toolCalls });

describe('answerKey', () => {
  it('an answer’s key is the same whatever agents do to white space and thoughts', () => {
    expect(key('Hello,  world.\n')).toBe(key('Hello, world.'));
    expect(key('<think>Let me see.</think>\n\nHello, world.')).toBe(key('Hello, world.'));
    expect(key('I wonder…</think>Hello, world.')).toBe(key('Hello, world.'));
    expect(key('Hello<think>never closed')).toBe(key('Hello'));
  });

  it('an answer’s key is the same whatever agents do to the ids and the spelling of tool calls', () => {
    expect(key('', call('f', '{"b": 1, "a": [2, {"d": 1, "c": 2}]}', 'call_1'))).toBe(
      key('', call('f', '{"a":[2,{"c":2,"d":1}],"b":1}', 'call1')),
    );
    expect(key('', call('f', ''))).toBe(key('', call('f', '{}')));
    expect(key('', call('f', 'not json at all'))).toBe(key('', call('f', 'not  json at all')));
  });

  it('an answer’s key differs for other words, other arguments, another order of calls, another secret', () => {
    const keys = [
      key('Hello'),
      key('hello'),
      key('', call('f', '{"a":1}')),
      key('', call('f', '{"a":2}')),
      key('', call('g', '{"a":1}')),
      key('', call('f', '{}'), call('g', '{}')),
      key('', call('g', '{}'), call('f', '{}')),
      answerKey('t'.repeat(32), { text: 'Hello', toolCalls: [] }),
    ];
    expect(new Set(keys).size).toBe(keys.length);
  });

  it('the key is empty for an answer that says nothing', () => {
    expect(key(' \n')).toBe('');
    expect(key('<think>only thoughts</think>')).toBe('');
  });
});

describe('answersIn', () => {
  it('gives one key for each assistant message, in order, whatever shape its content has', () => {
    const messages = [
      { role: 'system', content: 'Be nice.' },
      {
        role: 'assistant',
        content: [
          { type: 'text', text: 'Hel' },
          { type: 'text', text: 'lo' },
        ],
      },
      { role: 'user', content: 'Hello' },
      { role: 'assistant', content: null },
      { role: 'assistant', content: null, tool_calls: [call('f', '{}')] },
    ];
    expect(keysOf(messages)).toEqual([key('Hello'), '', key('', call('f', '{}'))]);
  });

  it('gives keys to the newest answers only, at the places where they stand', () => {
    const messages = Array.from({ length: 2_000 }, (_, index) => ({ role: 'assistant', content: `answer ${index}` }));
    const keys = keysOf(messages);
    expect(keys).toHaveLength(2_000);
    expect(keys.filter((each) => each !== '')).toEqual(messages.slice(-64).map(({ content }) => key(content)));
    expect(keys[1_999]).toBe(key('answer 1999'));
  });

  it('neither hashes nor parses what is longer than a conversation', () => {
    const long = { role: 'assistant', content: 'x'.repeat(1_200_000) };
    const messages = [{ role: 'assistant', content: 'old' }, long, { role: 'assistant', content: 'new' }];
    expect(keysOf(messages)).toEqual(['', '', key('new')]);
  });

  it.each([
    ['objects', `[${'{},'.repeat(160_000)}{}]`],
    ['members', JSON.stringify(Object.fromEntries(Array.from({ length: 40_000 }, (_, at) => [`k${at}`, 1])))],
    ['strings', `[${'"",'.repeat(160_000)}""]`],
    ['an object', Object.fromEntries(Array.from({ length: 40_000 }, (_, at) => [`k${at}`, 1]))],
  ])('arguments of a call that are half a megabyte of %s are not parsed', (_, args) => {
    const parse = vi.spyOn(JSON, 'parse');
    const dense = { role: 'assistant', content: null, tool_calls: [{ function: { name: 'f', arguments: args } }] };
    const messages = [{ role: 'assistant', content: 'old' }, dense, { role: 'assistant', content: 'new' }];
    expect(keysOf(messages)).toEqual(['', '', key('new')]);
    expect(parse).not.toHaveBeenCalled();
    parse.mockRestore();
  });

  it('arguments that are nested deeper than a hundred are a text, whose members are not put in order', () => {
    const nested = (depth: number, members: string) =>
      key('', call('f', '['.repeat(depth) + members + ']'.repeat(depth)));
    expect(nested(50, '{"a":1,"b":2}')).toBe(nested(50, '{"b":2,"a":1}'));
    expect(nested(150, '{"a":1,"b":2}')).not.toBe(nested(150, '{"b":2,"a":1}'));
    expect(nested(150, '{"a":1,"b":2}')).toBe(nested(150, ' {"a":1, "b":2}'));
  });

  it('the keys of all answers of a request take no more time than those of one long text', () => {
    const members = (count: number) => `{${Array.from({ length: count }, (_, at) => `"k${at}":1`).join(',')}}`;
    const calls = (count: number, args: string) =>
      Array.from({ length: count }, () => ({ role: 'assistant', content: null, tool_calls: [call('f', args)] }));
    const ofText = leastMilliseconds(() => keysOf([{ role: 'assistant', content: 'a word '.repeat(74_000) }]));
    for (const messages of [
      calls(1, members(90_000)),
      calls(64, members(1_400)),
      calls(1, `[${'"",'.repeat(340_000)}""]`),
    ])
      expect(leastMilliseconds(() => keysOf(messages)) / ofText).toBeLessThan(4);
  });
});

/** Of a processor; the least of some, because others use the machine, too. */
function leastMilliseconds(work: () => unknown): number {
  const spent = Array.from({ length: 4 }, () => {
    const before = process.cpuUsage();
    work();
    const { user, system } = process.cpuUsage(before);
    return (user + system) / 1_000;
  });
  return Math.min(...spent);
}
