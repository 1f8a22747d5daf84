import { nextStateBounds } from '@backtalk/kit';
import { Provenance, TurnContinued } from '@backtalk/proto/facts';
import { describe, expect, it } from 'vitest';
import { readMessages } from './messages.js';
import { nextStateOf, saysSomething, textsOf } from './next-state.js';

const none = new Set<string>();
const part = { type: 'text', text: 'x' };
const mebibytes = (count: number) => count * 1024 * 1024;
const read = (messages: readonly unknown[]) => readMessages(messages);

describe('nextStateOf', () => {
  it('takes every message behind the answer: all parallel tool results and the words of the user', () => {
    const messages = read([
      { role: 'user', content: 'weather?' },
      {
        role: 'assistant',
        content: null,
        tool_calls: [
          { id: 'call_1', function: { name: 'weather', arguments: '{}' } },
          { id: 'call_2', function: { name: 'clock', arguments: '{}' } },
        ],
      },
      { role: 'tool', tool_call_id: 'call_1', content: 'sunny', is_error: true },
      { role: 'tool', tool_call_id: 'call_2', content: [{ type: 'text', text: 'noon' }] },
      { role: 'user', content: 'and tomorrow?' },
    ]);
    expect(nextStateOf(messages, 0, '', none)).toEqual([
      {
        provenance: Provenance.PROVENANCE_TOOL,
        text: 'sunny',
        toolCallId: 'call_1',
        toolName: 'weather',
        isError: true,
      },
      { provenance: Provenance.PROVENANCE_TOOL, text: 'noon', toolCallId: 'call_2', toolName: 'clock', isError: false },
      { provenance: Provenance.PROVENANCE_USER, text: 'and tomorrow?', toolCallId: '', toolName: '', isError: false },
    ]);
  });

  it('a result that is marked as an error is one where it has no words, too', () => {
    const messages = read([
      { role: 'assistant', content: null, tool_calls: [{ id: 'call_1', function: { name: 'look', arguments: '{}' } }] },
      { role: 'tool', tool_call_id: 'call_1', content: [{ type: 'image_url' }], is_error: true },
    ]);
    expect(nextStateOf(messages, 0, '', none)).toMatchObject([{ text: '', toolName: 'look', isError: true }]);
  });

  it('what follows another answer is said about that one', () => {
    const messages = read([
      { role: 'user', content: 'Why?' },
      { role: 'assistant', content: 'Ours.' },
      { role: 'assistant', content: 'And more of it.' },
      { role: 'user', content: 'And how?' },
      { role: 'assistant', content: 'Of another model.' },
      { role: 'user', content: 'That is wrong.' },
    ]);
    expect(nextStateOf(messages, 0, '', none).map(({ text }) => text)).toEqual(['And how?']);
    expect(nextStateOf(messages, 2, '', none).map(({ text }) => text)).toEqual(['That is wrong.']);
    expect(nextStateOf(messages.slice(0, 3), 0, '', none)).toEqual([]);
  });

  it('context that a client adds by itself is not taken for the user speaking', () => {
    const repeated = `Workspace rules: ${'always keep the tests green and the commits small. '.repeat(3)}`;
    const messages = read([
      {
        role: 'user',
        content: [
          { type: 'text', text: repeated },
          { type: 'text', text: 'fix it' },
        ],
      },
      { role: 'assistant', content: 'done' },
      {
        role: 'user',
        content: [
          { type: 'text', text: repeated },
          { type: 'text', text: '<system-reminder>be brief</system-reminder>' },
          { type: 'text', text: 'Too long.\n<system-reminder>be brief</system-reminder>' },
        ],
      },
    ]);
    const state = nextStateOf(messages, 0, '', textsOf(messages.slice(0, 1)));
    expect(state.map(({ provenance, text }) => [provenance, text.slice(0, 9)])).toEqual([
      [Provenance.PROVENANCE_CLIENT, 'Workspace'],
      [Provenance.PROVENANCE_CLIENT, '<system-r'],
      [Provenance.PROVENANCE_USER, 'Too long.'],
    ]);
    expect(state.at(-1)?.text).toBe('Too long.');
  });

  it('tells the words of a person from what their agent sends with them, though that changes from turn to turn', () => {
    const context = (runs: string) =>
      `<<<BEGIN_OPENCLAW_INTERNAL_CONTEXT>>>\nActive exec sessions:\n${runs}\n<<<END_OPENCLAW_INTERNAL_CONTEXT>>>`;
    const messages = read([
      { role: 'user', content: '[Sun 2026-11-22 11:26 UTC] How far is it?\n\nRuntime: agent=main | host=box' },
      { role: 'user', content: context('none') },
      { role: 'assistant', content: 'Ten miles.' },
      { role: 'user', content: '[Sun 2026-11-22 11:28 UTC] Kilometres, please.' },
      { role: 'user', content: context('pid 7: error: failed, no, wrong') },
      { role: 'user', content: 'Observation: exit 0' },
    ]);
    const state = nextStateOf(messages, 0, '', textsOf(messages.slice(0, 2)));
    expect(state.map(({ provenance, text }) => [provenance, text.slice(0, 19)])).toEqual([
      [Provenance.PROVENANCE_USER, 'Kilometres, please.'],
      [Provenance.PROVENANCE_CLIENT, '<<<BEGIN_OPENCLAW_I'],
      [Provenance.PROVENANCE_ENVIRONMENT, 'Observation: exit 0'],
    ]);
  });

  it('keeps a short sentence that a user says twice as the words of the user', () => {
    const messages = read([
      { role: 'user', content: 'Shorter, please.' },
      { role: 'assistant', content: 'ok' },
      { role: 'user', content: 'Shorter, please.' },
    ]);
    expect(nextStateOf(messages, 0, '', textsOf(messages.slice(0, 1)))[0]?.provenance).toBe(Provenance.PROVENANCE_USER);
  });

  it('calls an observation what a header calls one', () => {
    const messages = read([
      { role: 'user', content: 'go' },
      { role: 'assistant', content: 'ls' },
      { role: 'user', content: 'file.txt' },
    ]);
    expect(nextStateOf(messages, 0, 'environment', none)[0]?.provenance).toBe(Provenance.PROVENANCE_ENVIRONMENT);
  });

  it.each([
    ['one text of a tool', [{ role: 'tool', content: 'x'.repeat(mebibytes(7)) }]],
    ['one text of a person', [{ role: 'user', content: 'é'.repeat(mebibytes(3)) }]],
    ['many texts', Array.from({ length: 900 }, () => ({ role: 'tool', content: 'x'.repeat(8_000) }))],
    ['many objects', Array.from({ length: 70 }, () => ({ role: 'tool', content: `{"a":"${'x'.repeat(100_000)}"}` }))],
    ['long names', Array.from({ length: 900 }, () => ({ role: 'tool', content: 'x', name: 'n'.repeat(8_000) }))],
    [
      'a name for every part',
      [{ role: 'tool', tool_call_id: 'id', content: Array.from({ length: 9_000 }, () => part) }],
    ],
  ])('keeps of seven megabytes no more than readers read: %s', (_what, following) => {
    const calls = [{ id: 'id', function: { name: 'n'.repeat(mebibytes(1)), arguments: '{}' } }];
    const messages = read([{ role: 'assistant', content: 'ok', tool_calls: calls }, ...following]);
    const state = nextStateOf(messages, 0, '', none);
    expect(state).toHaveLength(messages.slice(1).flatMap(({ texts }) => texts).length);
    const bytes = TurnContinued.encode(TurnContinued.fromPartial({ nextState: state })).finish().length;
    expect(bytes).toBeLessThan(nextStateBounds.bytesMax);
  });

  it('keeps head and tail of a long text, and whole what reads as fields', () => {
    const text = `head ${'x'.repeat(100_000)} exit code: 1`;
    const fields = JSON.stringify({ log: 'x'.repeat(500_000), error: 'no', more: 'y'.repeat(400_000) });
    const messages = read([
      { role: 'assistant', content: 'ok' },
      { role: 'tool', content: text },
      { role: 'tool', content: fields },
      { role: 'tool', content: fields },
    ]);
    const [long, whole, second] = nextStateOf(messages, 0, '', none).map((entry) => entry.text);
    expect(long).toMatch(/^head x+ \[…\] x+ exit code: 1$/);
    expect(long?.length).toBeLessThan(20_000);
    expect(whole).toBe(fields);
    // Its halves would be an object again, and one without its error.
    expect(second?.length).toBeLessThan(20_000);
    expect(second).not.toMatch(/^\s*\{/);
  });

  it('says nothing where only a client spoke', () => {
    const messages = read([
      { role: 'assistant', content: 'ok' },
      { role: 'user', content: 'Read HEARTBEAT.md if it exists' },
    ]);
    expect(saysSomething(nextStateOf(messages, 0, '', none))).toBe(false);
    expect(nextStateOf(messages, 5, '', none)).toEqual([]);
  });
});
