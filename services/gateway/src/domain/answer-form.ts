// In which form does a client read its answer?
//
// In: a request, and its turn. Out: what an engine's answer becomes for that client, in one piece or frame by frame: of the
// chat API, of the Responses API, or of Anthropic's Messages API. Pure.
import type { Capture, EngineFrame, RawObject } from '@backtalk/dialects';
import type { BacktalkError, JsonObject } from '@backtalk/kit';
import type { ChatRequest } from './chat-request.js';
import { errorEvent } from './anthropic-error.js';
import { chunkForClient, forClient, sseDone, sseEvent } from './frame.js';
import { MessageEvents, wholeMessage } from './messages-answer.js';
import { openAiError } from './openai-error.js';
import { ResponseEvents, wholeResponse } from './responses-answer.js';

export interface AnswerForm {
  whole(raw: RawObject, capture: Capture): JsonObject;
  /** Text of the stream. */
  frame(frame: EngineFrame): string;
  /** What comes after the last frame of an answer that did not break off. */
  end(): string;
  /** What comes after the last frame of one that did. */
  broken(error: BacktalkError): string;
}

export function answerForm(request: ChatRequest, turn: string): AnswerForm {
  const { api, model, repeated, wantsLogprobs } = request;
  if (api === 'messages') {
    const view = { turn, model };
    const events = new MessageEvents(view);
    return {
      whole: (raw, capture) => wholeMessage(raw, capture, view),
      frame: (frame) => events.frame(frame),
      end: () => events.end(),
      broken: (error) => errorEvent(error),
    };
  }
  if (repeated === undefined) {
    const view = { turn, ...request };
    return {
      whole: (raw) => forClient(raw, view),
      frame: (frame) => chunkForClient(frame, view),
      end: () => sseDone,
      broken: (error) => sseEvent(JSON.stringify(openAiError(error).body)),
    };
  }
  const view = { turn, model, wantsLogprobs, repeated };
  const events = new ResponseEvents(view);
  return {
    whole: (raw, capture) => wholeResponse(raw, capture, view),
    frame: (frame) => events.frame(frame),
    end: () => events.end(),
    broken: (error) => events.broken(openAiError(error).body.error),
  };
}
