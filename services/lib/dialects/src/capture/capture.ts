// What is kept of an answer: the exact ids and logprobs, and the text as the client saw it.

export interface TokenUsage {
  readonly promptTokens: number;
  /** Of these, what the engine had in its cache; absent where it does not say. */
  readonly cachedTokens?: number;
  readonly completionTokens: number;
}

/** A piece of a tool call, as streams send them. */
export interface ToolCallDelta {
  readonly index: number;
  readonly id?: string | undefined;
  readonly name?: string | undefined;
  readonly arguments?: string | undefined;
}

export interface ToolCall {
  readonly id: string;
  readonly type: 'function';
  readonly function: { readonly name: string; readonly arguments: string };
}

/** The first choice of an answer. */
export interface Capture {
  /** Absent when the engine sent none. */
  readonly promptIds: readonly number[] | undefined;
  readonly answerIds: readonly number[];
  readonly logprobs: readonly number[];
  readonly text: string;
  readonly reasoning: string;
  readonly toolCalls: readonly ToolCall[];
  /** The engine's own word; empty while the answer is incomplete. */
  readonly finishReason: string;
  readonly usage: TokenUsage | undefined;
  /** How many choices the answer had. */
  readonly choices: number;
  /** What the engine called its weights in the first frame and in the last one; empty where it named none. */
  readonly modelAtStart: string;
  readonly modelAtEnd: string;
}
