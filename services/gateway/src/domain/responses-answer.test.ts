import type { EngineFrame } from '@backtalk/dialects';
import { describe, expect, it } from 'vitest';
import { ResponseEvents, wholeResponse, type ResponseView } from './responses-answer.js';

const view: ResponseView = {
  turn: 'turn_abc',
  model: 'backtalk',
  wantsLogprobs: false,
  repeated: { temperature: null, top_p: null, max_output_tokens: null, parallel_tool_calls: true, metadata: {} },
};
const usage = { promptTokens: 7, cachedTokens: 2, completionTokens: 5 };
const created = 1_700_000_000;

const frame = (given: Partial<EngineFrame>): EngineFrame => ({ raw: { created }, choice: 0, ...given });
const callDelta = (index: number, written: string, name?: string) => ({
  index,
  ...(name === undefined ? {} : { id: `call_${String(index)}`, name }),
  arguments: written,
});

interface Event {
  readonly type: string;
  readonly sequence_number: number;
  readonly response?: { readonly output: readonly unknown[] };
}

function eventsOf(text: string): Event[] {
  return text
    .split('\n\n')
    .filter((event) => event !== '')
    .map((event) => {
      const [, type = '', data = ''] = /^event: (.*)\ndata: (.*)$/.exec(event) ?? [];
      const read = JSON.parse(data) as Event;
      expect(read.type).toBe(type);
      return read;
    });
}

function streamed(frames: readonly Partial<EngineFrame>[]): Event[] {
  const events = new ResponseEvents(view);
  return eventsOf(frames.map((given) => events.frame(frame(given))).join('') + events.end());
}

const answer = {
  created,
  choices: [
    {
      finish_reason: 'tool_calls',
      message: {
        content: 'I look.',
        reasoning: 'Rome, then.',
        tool_calls: [
          { id: 'call_0', type: 'function', function: { name: 'rain', arguments: '{"place":"Rome"}' } },
          { id: 'call_1', type: 'function', function: { name: 'tide', arguments: '{}' } },
        ],
      },
    },
  ],
};
const frames: readonly Partial<EngineFrame>[] = [
  { reasoning: 'Rome, ' },
  { reasoning: 'then.' },
  { content: 'I ' },
  { content: 'look.' },
  { toolCallDeltas: [callDelta(0, '{"place"', 'rain')] },
  { toolCallDeltas: [callDelta(0, ':"Rome"}'), callDelta(1, '{}', 'tide')] },
  { finishReason: 'tool_calls' },
  { choice: -1, usage },
];

describe('a response', () => {
  it('has an item for the thought, the words and each call, and token counts', () => {
    expect(wholeResponse(answer, view, usage)).toMatchObject({
      id: 'turn_abc',
      object: 'response',
      created_at: created,
      status: 'completed',
      incomplete_details: null,
      output: [
        { id: 'rs_abc_0', type: 'reasoning', content: [{ type: 'reasoning_text', text: 'Rome, then.' }] },
        { id: 'msg_abc_1', type: 'message', role: 'assistant', content: [{ type: 'output_text', text: 'I look.' }] },
        { id: 'fc_abc_2', type: 'function_call', call_id: 'call_0', name: 'rain', arguments: '{"place":"Rome"}' },
        { id: 'fc_abc_3', type: 'function_call', call_id: 'call_1', name: 'tide', arguments: '{}' },
      ],
      usage: { input_tokens: 7, input_tokens_details: { cached_tokens: 2 }, output_tokens: 5, total_tokens: 12 },
    });
  });

  it('is the same whole and streamed', () => {
    expect(streamed(frames).at(-1)?.response).toEqual(wholeResponse(answer, view, usage));
  });

  it('comes as events that are numbered, and open and close each item in its place', () => {
    const events = streamed(frames);
    expect(events.map(({ sequence_number: number }) => number)).toEqual(events.map((_, at) => at));
    expect(events.map(({ type }) => type.replace('response.', ''))).toEqual([
      'created',
      'in_progress',
      ...['output_item.added', 'content_part.added', 'reasoning_text.delta', 'reasoning_text.delta'],
      ...['reasoning_text.done', 'content_part.done', 'output_item.done'],
      ...['output_item.added', 'content_part.added', 'output_text.delta', 'output_text.delta'],
      ...['output_text.done', 'content_part.done', 'output_item.done'],
      ...['output_item.added', 'function_call_arguments.delta', 'function_call_arguments.delta'],
      ...['function_call_arguments.done', 'output_item.done'],
      ...['output_item.added', 'function_call_arguments.delta', 'function_call_arguments.done', 'output_item.done'],
      'completed',
    ]);
  });

  it.each([
    ['length', 'incomplete', { reason: 'max_output_tokens' }],
    ['content_filter', 'incomplete', { reason: 'content_filter' }],
    ['stop', 'completed', null],
  ])('of an answer that ended by %s is %s', (finishReason, status, incomplete) => {
    const whole = { created, choices: [{ finish_reason: finishReason, message: { content: 'I' } }] };
    expect(wholeResponse(whole, view, usage)).toMatchObject({ status, incomplete_details: incomplete });
    const last = streamed([{ content: 'I' }, { finishReason }, { choice: -1, usage }]).at(-1);
    expect(last).toMatchObject({ type: `response.${status}`, response: wholeResponse(whole, view, usage) });
  });

  it('of an answer that says nothing has a message without words', () => {
    const whole = wholeResponse(
      { created, choices: [{ finish_reason: 'stop', message: { content: null } }] },
      view,
      usage,
    );
    expect(whole['output']).toMatchObject([{ type: 'message', content: [{ text: '' }] }]);
    expect(streamed([{ finishReason: 'stop' }, { choice: -1, usage }]).at(-1)?.response).toEqual(whole);
  });

  it('has log-probabilities where they were asked for', () => {
    const content = [{ token: 'I', logprob: -0.5, bytes: [73], top_logprobs: [] }];
    const asked = { ...view, wantsLogprobs: true };
    const whole = { created, choices: [{ finish_reason: 'stop', message: { content: 'I' }, logprobs: { content } }] };
    expect(wholeResponse(whole, asked, usage)['output']).toMatchObject([{ content: [{ logprobs: content }] }]);
    const events = new ResponseEvents(asked);
    const piece = events.frame({ raw: { created, choices: [{ logprobs: { content } }] }, choice: 0, content: 'I' });
    expect(eventsOf(piece + events.end()).filter(({ type }) => type.startsWith('response.output_text'))).toMatchObject([
      { logprobs: content },
      { logprobs: content },
    ]);
    expect(wholeResponse(whole, view, usage)['output']).toMatchObject([{ content: [{ logprobs: [] }] }]);
  });
});
