import type { EngineFrame } from '@backtalk/dialects';
import { describe, expect, it } from 'vitest';
import { callDelta, captureOf, eventsIn, frameOf, frameUsage, saidFrames } from '../testing/engine-frames.js';
import { MessageEvents, wholeMessage } from './messages-answer.js';

const view = { turn: 'turn_abc', model: 'backtalk' };
interface Event {
  readonly type: string;
  readonly index?: number;
  readonly content_block?: Readonly<Record<string, unknown>>;
  readonly delta?: Readonly<Record<string, unknown>>;
}

function streamed(frames: readonly Partial<EngineFrame>[]): Event[] {
  const events = new MessageEvents(view);
  return eventsIn<Event>(frames.map((given) => events.frame(frameOf(given))).join('') + events.end());
}

const whole = (frames: readonly Partial<EngineFrame>[], raw: object = {}) =>
  wholeMessage({ ...raw }, captureOf(frames), view);

/** As clients put the blocks of a stream together. */
function blocksOf(events: readonly Event[]): unknown[] {
  const blocks: { block: Record<string, unknown>; input: string }[] = [];
  for (const { type, index = -1, content_block: begun, delta = {} } of events) {
    if (type === 'content_block_start') {
      expect(index).toBe(blocks.length);
      blocks.push({ block: { ...begun }, input: '' });
    }
    const at = blocks[index];
    if (type !== 'content_block_delta' || at === undefined) continue;
    for (const key of ['text', 'thinking', 'signature'])
      if (typeof delta[key] === 'string') at.block[key] = String(at.block[key]) + delta[key];
    if (typeof delta['partial_json'] === 'string') at.input += delta['partial_json'];
  }
  return blocks.map(({ block, input }) =>
    block['type'] === 'tool_use' ? { ...block, input: JSON.parse(input === '' ? '{}' : input) as unknown } : block,
  );
}

describe('a message', () => {
  it('a message has a block for the thought, the words and each call, and token counts', () => {
    expect(whole(saidFrames)).toEqual({
      id: 'turn_abc',
      type: 'message',
      role: 'assistant',
      model: 'backtalk',
      content: [
        { type: 'thinking', thinking: 'Rome, then.', signature: 'turn_abc' },
        { type: 'text', text: 'I look.' },
        { type: 'tool_use', id: 'call_0', name: 'rain', input: { place: 'Rome' } },
        { type: 'tool_use', id: 'call_1', name: 'tide', input: {} },
      ],
      stop_reason: 'tool_use',
      stop_sequence: null,
      usage: { input_tokens: 5, cache_creation_input_tokens: 0, cache_read_input_tokens: 2, output_tokens: 5 },
    });
  });

  it('a stream has the same blocks, calls last, though their pieces come in turns', () => {
    const [first, ...rest] = saidFrames;
    const events = streamed([{ ...first, promptIds: [1, 2, 3] }, ...rest]);
    const { content, stop_reason, stop_sequence, usage: counted } = whole(saidFrames);
    expect(blocksOf(events)).toEqual(content);
    expect(events.map(({ type }) => type)).toEqual([
      'message_start',
      ...['content_block_start', 'content_block_delta', 'content_block_delta', 'content_block_delta'],
      'content_block_stop',
      ...['content_block_start', 'content_block_delta', 'content_block_delta'],
      ...['ping', 'ping', 'ping', 'ping', 'content_block_stop'],
      ...['content_block_start', 'content_block_delta', 'content_block_stop'],
      ...['content_block_start', 'content_block_delta', 'content_block_stop'],
      'message_delta',
      'message_stop',
    ]);
    expect(events[0]).toMatchObject({ message: { id: 'turn_abc', content: [], usage: { input_tokens: 3 } } });
    expect(events.at(-2)).toMatchObject({ delta: { stop_reason, stop_sequence }, usage: counted });
  });

  it('words that come between the pieces of a call stand before it, as whole, and the space around calls is none', () => {
    const call = { toolCallDeltas: [callDelta(0, '{', 'tide')] };
    const rest = { toolCallDeltas: [callDelta(0, '}')] };
    const answer = [call, { content: '\n' }, { content: 'So' }, rest, { content: ' far.' }, { finishReason: 'stop' }];
    expect(blocksOf(streamed(answer))).toEqual([
      { type: 'text', text: 'So far.' },
      { type: 'tool_use', id: 'call_0', name: 'tide', input: {} },
    ]);
  });

  it.each([
    ['stop', {}, 'end_turn', null],
    ['stop', { stop_reason: 'END' }, 'stop_sequence', 'END'],
    ['stop', { stop_reason: 151_645 }, 'end_turn', null],
    ['stop', { matched_stop: 'END' }, 'stop_sequence', 'END'],
    ['length', {}, 'max_tokens', null],
    ['content_filter', {}, 'refusal', null],
  ])('an answer that ended by %s %j says so', (finishReason, choice, reason, sequence) => {
    const said = { stop_reason: reason, stop_sequence: sequence };
    const raw = { choices: [choice] };
    const answer = [{ content: 'Hello' }, { finishReason, raw }];
    expect(whole(answer, raw)).toMatchObject(said);
    expect(streamed(answer).at(-2)).toMatchObject({ delta: said });
  });

  it('an answer that the engine ended itself is an error, whole and streamed', () => {
    const answer = [{ content: 'Hello' }, { finishReason: 'abort' }];
    expect(() => whole(answer)).toThrow(/failed in the middle/);
    expect(streamed(answer).at(-1)).toMatchObject({ type: 'error', error: { type: 'api_error' } });
  });

  it('an answer that says nothing has words that are none', () => {
    const answer = [{ finishReason: 'stop' }, { choice: -1, usage: frameUsage }];
    expect(whole(answer)['content']).toEqual([{ type: 'text', text: '' }]);
    expect(blocksOf(streamed(answer))).toEqual([{ type: 'text', text: '' }]);
  });

  it.each(['[1', '[1]', 'rain in Rome', "{'a': 1}", '{"a": '])(
    'a call whose arguments are no object, as %s, is told as what was written, and one without an id gets one',
    (written) => {
      const answer = [{ toolCallDeltas: [{ index: 0, name: 'rain', arguments: written }] }, { finishReason: 'length' }];
      const content = [{ type: 'tool_use', id: 'toolu_abc_0', name: 'rain', input: { INVALID_JSON: written } }];
      expect(whole(answer)['content']).toEqual(content);
      expect(blocksOf(streamed(answer))).toEqual(content);
    },
  );
});
