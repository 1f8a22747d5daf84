// Folds the frames of one streamed answer into its capture.
//
// In: frames in order. Out: the capture so far, at any moment, and about how much memory it takes. Pure; never checks
// anything (see `invariants.ts`). Only the first choice is captured; others are counted.
import type { EngineFrame } from '../engine-client.js';
import type { Capture, TokenUsage } from './capture.js';

interface GrowingToolCall {
  id: string;
  name: string;
  arguments: string;
}

/** As a list of numbers keeps one, and a text each piece that is joined to it. */
const numberBytes = 8;
const pieceBytes = 32;

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
  private textBytes = 0;
  private keepsIds = true;

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
    if (this.keepsIds) {
      if (frame.promptIds !== undefined) this.promptIds = frame.promptIds;
      if (frame.ids !== undefined) append(this.answerIds, frame.ids);
      if (frame.logprobs !== undefined) append(this.logprobs, frame.logprobs);
    }
    if (frame.content !== undefined) this.text += this.counted(frame.content);
    if (frame.reasoning !== undefined) this.reasoning += this.counted(frame.reasoning);
    if (frame.finishReason !== undefined) this.finishReason = frame.finishReason;
    if (frame.toolCallDeltas === undefined) return;
    for (const delta of frame.toolCallDeltas) {
      const call = this.toolCalls.get(delta.index) ?? { id: '', name: '', arguments: '' };
      this.toolCalls.set(delta.index, call);
      if (delta.id !== undefined) call.id = delta.id;
      if (delta.name !== undefined) call.name += this.counted(delta.name);
      if (delta.arguments !== undefined) call.arguments += this.counted(delta.arguments);
    }
  }

  /** About as many bytes of memory as all that is captured takes. */
  get bytes(): number {
    const numbers = lengthOf(this.promptIds) + this.answerIds.length + this.logprobs.length;
    return numberBytes * numbers + this.textBytes;
  }

  /** Ids and logprobs are kept no longer, of what has come and of what comes. */
  letIdsGo(): void {
    this.keepsIds = false;
    this.promptIds = undefined;
    this.answerIds.length = 0;
    this.logprobs.length = 0;
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

  private counted(piece: string): string {
    if (piece !== '') this.textBytes += pieceBytes + lengthOf(piece);
    return piece;
  }
}

/** What an engine sends in place of a text or a list has none: a count that is no number would never end. */
function lengthOf(value: unknown): number {
  return typeof value === 'string' || Array.isArray(value) ? value.length : 0;
}

function append(target: number[], more: readonly number[]): void {
  for (const value of more) target.push(value);
}
