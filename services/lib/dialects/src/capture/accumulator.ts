// Folds the frames of one streamed answer into its capture.
//
// In: frames in order. Out: the capture so far, at any moment. Pure; never checks anything (see `invariants.ts`).
// Only the first choice is captured; others are counted.
import type { EngineFrame } from '../engine-client.js';
import type { Capture, TokenUsage } from './capture.js';

interface GrowingToolCall {
  id: string;
  name: string;
  arguments: string;
}

export class CaptureAccumulator {
  private promptIds: readonly number[] | undefined;
  private readonly answerIds: number[] = [];
  private readonly logprobs: number[] = [];
  private text = '';
  private reasoning = '';
  private readonly toolCalls = new Map<number, GrowingToolCall>();
  private finishReason = '';
  private usage: TokenUsage | undefined;
  private choices = 1;
  private modelAtStart: string | undefined;
  private modelAtEnd = '';

  add(frame: EngineFrame): void {
    if (frame.usage !== undefined) this.usage = frame.usage;
    if (frame.model !== undefined) {
      this.modelAtStart ??= frame.model;
      this.modelAtEnd = frame.model;
    }
    if (frame.choice !== 0) {
      this.choices = Math.max(this.choices, frame.choice + 1);
      return;
    }
    if (frame.promptIds !== undefined) this.promptIds = frame.promptIds;
    if (frame.ids !== undefined) append(this.answerIds, frame.ids);
    if (frame.logprobs !== undefined) append(this.logprobs, frame.logprobs);
    if (frame.content !== undefined) this.text += frame.content;
    if (frame.reasoning !== undefined) this.reasoning += frame.reasoning;
    if (frame.finishReason !== undefined) this.finishReason = frame.finishReason;
    if (frame.toolCallDeltas === undefined) return;
    for (const delta of frame.toolCallDeltas) {
      const call = this.toolCalls.get(delta.index) ?? { id: '', name: '', arguments: '' };
      this.toolCalls.set(delta.index, call);
      if (delta.id !== undefined) call.id = delta.id;
      if (delta.name !== undefined) call.name += delta.name;
      if (delta.arguments !== undefined) call.arguments += delta.arguments;
    }
  }

  /** What has been captured up to now. Its lists are the accumulator's own and grow with it. */
  capture(): Capture {
    return {
      promptIds: this.promptIds,
      answerIds: this.answerIds,
      logprobs: this.logprobs,
      text: this.text,
      reasoning: this.reasoning,
      toolCalls: [...this.toolCalls.values()].map(({ id, name, arguments: words }) => {
        return { id, type: 'function', function: { name, arguments: words } };
      }),
      finishReason: this.finishReason,
      usage: this.usage,
      choices: this.choices,
      modelAtStart: this.modelAtStart ?? '',
      modelAtEnd: this.modelAtEnd,
    };
  }
}

function append(target: number[], more: readonly number[]): void {
  for (const value of more) target.push(value);
}
