import type { EngineFrame } from '@backtalk/dialects';
import { describe, expect, it } from 'vitest';
import { callDelta, captureOf, eventsIn, frameOf, frameUsage, saidFrames } from '../testing/engine-frames.js';
import { ResponseEvents, wholeResponse, type ResponseView } from './responses-answer.js';

const view: ResponseView = {
  turn: 'turn_abc',
  model: 'backtalk',
  wantsLogprobs: false,
  repeated: {
    temperature: null,
    top_p: null,
    max_output_tokens: null,
    parallel_tool_calls: true,
    metadata: {},
    previous_response_id: null,
  },
};
const created = 1_700_000_000;
const frame = (given: Partial<EngineFrame>) => frameOf(given, { created });

interface Event {
  readonly type: string;
  readonly sequence_number: number;
  readonly response?: { readonly output: readonly unknown[] };
}

const eventsOf = eventsIn<Event>;

function streamed(frames: readonly Partial<EngineFrame>[]): Event[] {
  const events = new ResponseEvents(view);
  return eventsOf(frames.map((given) => events.frame(frame(given))).join('') + events.end());
}

const whole = (frames: readonly Partial<EngineFrame>[], raw: object = {}, asked = view) =>
  wholeResponse({ created, ...raw }, captureOf(frames), asked);

describe('a response', () => {
  it('a response has an item for the thought, the words and each call, and token counts', () => {
    expect(whole(saidFrames)).toMatchObject({
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

  it('a response is the same whole and streamed', () => {
    expect(streamed(saidFrames).at(-1)?.response).toEqual(whole(saidFrames));
  });

  it('comes as events that are numbered, and open and close each item in its place', () => {
    const events = streamed(saidFrames);
    expect(events.map(({ sequence_number: number }) => number)).toEqual(events.map((_, at) => at));
    expect(events.map(({ type }) => type.replace('response.', ''))).toEqual([
      'created',
      'in_progress',
      ...['output_item.added', 'content_part.added', 'reasoning_text.delta', 'reasoning_text.delta'],
      ...['reasoning_text.done', 'content_part.done', 'output_item.done'],
      ...['output_item.added', 'content_part.added', 'output_text.delta', 'output_text.delta'],
      ...['output_text.done', 'content_part.done', 'output_item.done'],
      ...['output_item.added', 'function_call_arguments.delta', 'output_item.added', 'function_call_arguments.delta'],
      ...['function_call_arguments.delta', 'function_call_arguments.delta'],
      ...['function_call_arguments.done', 'output_item.done', 'function_call_arguments.done', 'output_item.done'],
      'completed',
    ]);
  });

  it.each([
    ['length', 'incomplete', { reason: 'max_output_tokens' }, null],
    ['content_filter', 'incomplete', { reason: 'content_filter' }, null],
    ['abort', 'failed', null, { code: 'server_error' }],
    ['stop', 'completed', null, null],
  ])('the response of an answer that ended by %s is %s', (finishReason, status, incomplete, error) => {
    const answer = [
      { toolCallDeltas: [callDelta(0, '{"a":', 'rain')] },
      { finishReason },
      { choice: -1, usage: frameUsage },
    ];
    const itemStatus = status === 'completed' ? 'completed' : 'incomplete';
    expect(whole(answer)).toMatchObject({ status, incomplete_details: incomplete, output: [{ status: itemStatus }] });
    expect(whole(answer)['error']).toEqual(error === null ? null : expect.objectContaining(error));
    expect(streamed(answer).at(-1)).toMatchObject({ type: `response.${status}`, response: whole(answer) });
  });

  it('a response has no message of the space around calls', () => {
    const call = { toolCallDeltas: [callDelta(0, '{}', 'tide')] };
    const answer = [{ content: 'I look.' }, call, { content: '\n' }, { finishReason: 'tool_calls' }];
    expect(streamed(answer).at(-1)?.response?.output).toMatchObject([{ type: 'message' }, { type: 'function_call' }]);
  });

  it('the response of an answer that says nothing has a message without words', () => {
    const answer = [{ finishReason: 'stop' }, { choice: -1, usage: frameUsage }];
    expect(whole(answer)['output']).toMatchObject([{ type: 'message', content: [{ text: '' }] }]);
    expect(streamed(answer).at(-1)?.response).toEqual(whole(answer));
  });

  it('a response has log-probabilities where they were asked for: whole, or with each piece and never again', () => {
    const content = [{ token: 'I', logprob: -0.5, bytes: [73], top_logprobs: [] }];
    const asked = { ...view, wantsLogprobs: true };
    const raw = { choices: [{ logprobs: { content } }] };
    const answer = [{ content: 'I' }, { finishReason: 'stop' }];
    expect(whole(answer, raw, asked)['output']).toMatchObject([{ content: [{ logprobs: content }] }]);
    expect(whole(answer, raw)['output']).toMatchObject([{ content: [{ logprobs: [] }] }]);
    const events = new ResponseEvents(asked);
    const piece = events.frame({ raw: { created, ...raw }, choice: 0, content: 'I' });
    expect(eventsOf(piece).at(-1)).toMatchObject({ type: 'response.output_text.delta', logprobs: content });
    expect(events.end()).not.toContain('top_logprobs');
  });

  it('a response that broke off says so in events of its own', () => {
    const events = new ResponseEvents(view);
    const begun = events.frame(frame({ content: 'I' }));
    const error = { type: 'server_error', code: 'engine_failed', message: 'It failed.', param: null };
    expect(eventsOf(begun + events.broken(error)).slice(-2)).toMatchObject([
      { type: 'response.failed', response: { status: 'failed', error: { message: 'It failed.' } } },
      { type: 'error', code: 'engine_failed', message: 'It failed.', error },
    ]);
  });
});
