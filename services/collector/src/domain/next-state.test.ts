import { Provenance } from '@backtalk/proto/facts';
import { describe, expect, it } from 'vitest';
import { readMessages } from './messages.js';
import { nextStateOf, saysSomething, textsOf } from './next-state.js';

const none = new Set<string>();
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
      { role: 'tool', tool_call_id: 'call_1', content: 'sunny' },
      { role: 'tool', tool_call_id: 'call_2', content: [{ type: 'text', text: 'noon' }] },
      { role: 'user', content: 'and tomorrow?' },
    ]);
    expect(nextStateOf(messages, 0, '', none)).toEqual([
      { provenance: Provenance.PROVENANCE_TOOL, text: 'sunny', toolCallId: 'call_1', toolName: 'weather' },
      { provenance: Provenance.PROVENANCE_TOOL, text: 'noon', toolCallId: 'call_2', toolName: 'clock' },
      { provenance: Provenance.PROVENANCE_USER, text: 'and tomorrow?', toolCallId: '', toolName: '' },
    ]);
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

  it('says nothing where only a client spoke', () => {
    const messages = read([
      { role: 'assistant', content: 'ok' },
      { role: 'user', content: 'Read HEARTBEAT.md if it exists' },
    ]);
    expect(saysSomething(nextStateOf(messages, 0, '', none))).toBe(false);
    expect(nextStateOf(messages, 5, '', none)).toEqual([]);
  });
});
