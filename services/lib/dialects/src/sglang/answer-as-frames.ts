// A whole answer as the frames of a stream, for engines whose streams carry no token ids.
//
// In: an answer and its capture. Out: a frame with the role and the prompt's ids, one with all that was said and its
// ids, one with the finish reason, one with the token counts. Pure.
import type { Capture } from '../capture/capture.js';
import type { EngineFrame, RawObject } from '../engine-client.js';
import type { WireChat } from '../openai/chat-wire.js';

export function answerAsFrames(raw: WireChat, capture: Capture): EngineFrame[] {
  const { promptIds, answerIds: ids, logprobs, text, reasoning, toolCalls, finishReason, usage } = capture;
  const head = { id: raw['id'], object: 'chat.completion.chunk', created: raw['created'], model: raw['model'] };
  const chunk = (delta: RawObject, finish: string | null = null, itsLogprobs: unknown = null) => ({
    ...head,
    choices: [{ index: 0, delta, logprobs: itsLogprobs, finish_reason: finish }],
  });
  const frame = { choice: 0, model: capture.modelAtStart };
  const said = {
    content: text === '' && toolCalls.length > 0 ? null : text,
    ...(reasoning !== '' && { reasoning_content: reasoning }),
    ...(toolCalls.length > 0 && { tool_calls: toolCalls.map((call, index) => ({ index, ...call })) }),
  };
  const toolCallDeltas = toolCalls.map(({ id, function: { name, arguments: words } }, index) => {
    return { index, id, name, arguments: words };
  });
  return [
    { ...frame, raw: chunk({ role: 'assistant', content: '' }), promptIds },
    {
      ...frame,
      raw: chunk(said, null, raw.choices?.[0]?.logprobs ?? null),
      ids,
      logprobs,
      content: text,
      reasoning,
      toolCallDeltas,
    },
    ...(finishReason === '' ? [] : [{ ...frame, raw: chunk({}, finishReason), finishReason }]),
    { ...frame, raw: { ...head, choices: [], usage: raw['usage'] }, choice: -1, model: capture.modelAtEnd, usage },
  ];
}
