// For tests: frames of an engine's answer, and what a client of OpenAI's Responses API or of Anthropic's reads in a stream.
//
// In: what frames say. Out: frames, what they come to, and a stream's events in order. Never used in production.
import {
  CaptureAccumulator,
  type Capture,
  type EngineFrame,
  type RawObject,
  type ToolCallDelta,
} from '@backtalk/dialects';

export const frameUsage = { promptTokens: 7, cachedTokens: 2, completionTokens: 5 };

export function frameOf(given: Partial<EngineFrame>, raw: RawObject = {}): EngineFrame {
  return { raw, choice: 0, ...given };
}

/** A piece of a call: the first has its name. */
export function callDelta(index: number, written: string, name?: string): ToolCallDelta {
  return { index, ...(name === undefined ? {} : { id: `call_${String(index)}`, name }), arguments: written };
}

/** A thought, words, and two calls whose pieces come in turns. */
export const saidFrames: readonly Partial<EngineFrame>[] = [
  { reasoning: 'Rome, ' },
  { reasoning: 'then.' },
  { content: 'I ' },
  { content: 'look.' },
  { toolCallDeltas: [callDelta(0, '{"place"', 'rain')] },
  { toolCallDeltas: [callDelta(1, '{', 'tide')] },
  { toolCallDeltas: [callDelta(0, ':"Rome"}'), callDelta(1, '}')] },
  { finishReason: 'tool_calls' },
  { choice: -1, usage: frameUsage },
];

export function captureOf(frames: readonly Partial<EngineFrame>[]): Capture {
  const accumulator = new CaptureAccumulator();
  for (const given of frames) accumulator.add(frameOf(given));
  return accumulator.capture();
}

/** Each event’s data. Throws where its name is not its type. */
export function eventsIn<T extends { readonly type: string }>(text: string): T[] {
  return text
    .split('\n\n')
    .filter((event) => event !== '')
    .map((event) => {
      const [, name, data = ''] = /^event: (.*)\ndata: (.*)$/.exec(event) ?? [];
      const read = JSON.parse(data) as T;
      if (read.type !== name) throw new TypeError(`the event ${name ?? ''} is of type ${read.type}`);
      return read;
    });
}
