// What an engine can be asked, whatever dialect it speaks.
//
// In: requests in OpenAI's shape, with a deadline and a signal for each. Out: answers with the exact ids and logprobs
// behind them, and errors of one catalogue (`errors.ts`). Never: retries, routing, or an opinion about a request.
import type { JsonText } from './json-text.js';
import type { Capture, TokenUsage, ToolCallDelta } from './capture/capture.js';

/** Room for what of a reply lies in memory. */
export interface ReplyRoom {
  /** Hears of so many bytes more before they are kept for long. What it throws ends the call, or holds the engine back. */
  grow(bytes: number): void;
  /** So many of them are kept no longer. */
  shrink(bytes: number): void;
}

export interface CallOptions {
  /** Ends the call, and the engine's work on it, at once. */
  readonly signal?: AbortSignal | undefined;
  /** From the call to the end of the answer. */
  readonly deadlineMs: number;
  /** Room for a reply in one piece until its owner lets go of it, and for what of a stream has come and is not read yet; unbounded when left out. */
  readonly room?: ReplyRoom | undefined;
}

export interface StreamOptions extends CallOptions {
  /** From the call to the first frame; the whole deadline when left out. */
  readonly firstByteMs?: number | undefined;
  /** The longest gap between two pieces of the answer; the whole deadline when left out. */
  readonly idleMs?: number | undefined;
  /** Waited for before what has come is read, so that many streams at once do not keep all else waiting; at once when left out. */
  readonly turn?: (() => Promise<void>) | undefined;
}

/** A chat request in OpenAI's shape. `model` is the engine's name for the weights. Other fields pass through. Any may be written already. */
export interface EngineChatRequest {
  readonly model: string;
  readonly messages: readonly unknown[] | JsonText;
  readonly [field: string]: unknown;
}

/** A parsed JSON object as the engine sent it. Its owner may change it before passing it on. */
export type RawObject = Record<string, unknown>;

/** A whole answer: the engine's own body, and what was captured from it. */
export interface EngineAnswer {
  readonly raw: RawObject;
  readonly capture: Capture;
}

/** One chunk of a streamed answer. Absent fields were absent in the chunk. */
export interface EngineFrame {
  readonly raw: RawObject;
  /** Which choice the chunk belongs to; −1 for chunks without one (usage). */
  readonly choice: number;
  /** The engine's word for the weights that made this chunk. */
  readonly model?: string | undefined;
  readonly ids?: readonly number[] | undefined;
  readonly logprobs?: readonly number[] | undefined;
  readonly promptIds?: readonly number[] | undefined;
  readonly content?: string | undefined;
  readonly reasoning?: string | undefined;
  readonly toolCallDeltas?: readonly ToolCallDelta[] | undefined;
  readonly finishReason?: string | undefined;
  readonly usage?: TokenUsage | undefined;
}

export interface CompletionRequest {
  readonly model: string;
  /** Text, or token ids; or several of either. */
  readonly prompt: string | readonly number[] | readonly string[] | readonly (readonly number[])[];
  readonly maxTokens: number;
  readonly temperature?: number;
  readonly topP?: number;
  readonly seed?: number;
  readonly stop?: readonly string[];
  /** How many alternatives to give for each generated token (0 = only the token's own logprob); none when left out. */
  readonly topLogprobs?: number;
  /** Asks for the logprobs of the prompt's own tokens. */
  readonly promptLogprobs?: boolean;
  /** Prompt tokens before this index need no score: the built-in engine then uses again what it knows of them. */
  readonly promptLogprobsStart?: number;
}

/** One choice of a completion, in the order of the prompts. */
export interface CompletionChoice {
  readonly text: string;
  readonly ids: readonly number[];
  readonly logprobs: readonly number[];
  /** For each generated token, the alternatives asked for, by token text. */
  readonly topLogprobs: readonly Readonly<Record<string, number>>[];
  /** For each prompt token its logprob; undefined for the first, which has none. */
  readonly promptLogprobs?: readonly (number | undefined)[];
  readonly finishReason: string;
}

/** An answer to be scored under a prompt. Logprobs are those of the model's distribution at temperature 1. */
export interface ScoreItem {
  readonly promptIds: readonly number[];
  readonly answerIds: readonly number[];
}

export interface TokenizeRequest {
  readonly model: string;
  readonly text?: string;
  readonly messages?: readonly unknown[] | JsonText;
  readonly tools?: readonly unknown[] | JsonText | undefined;
  /** Whether the template opens the assistant's turn; true when left out. Only for messages. */
  readonly addGenerationPrompt?: boolean;
  /** What the model's template is given besides. Only for messages. */
  readonly templateArguments?: Readonly<Record<string, unknown>> | JsonText | undefined;
}

export interface EngineModel {
  readonly id: string;
  /** The base model's name, for an adapter. */
  readonly parent: string | undefined;
  /** The folder that an adapter was loaded from, where the engine says it. */
  readonly root: string | undefined;
  readonly maxContext: number | undefined;
}

/**
 * `up`: answers; `refusing`: answers, but not to this key; `dead`: the server says that its engine is gone; `unreachable`: nothing listens
 * (loading, or gone).
 */
export type EngineHealth = 'up' | 'refusing' | 'dead' | 'unreachable';

export const capabilityNames = [
  'token_ids',
  'streamed_token_ids',
  'logprobs',
  'prompt_logprobs',
  'true_logprobs',
  'adapters',
  'tokenize',
] as const;
export type CapabilityName = (typeof capabilityNames)[number];

/** What an engine turned out to be able to do when it was asked. */
export interface Capabilities {
  readonly baseModel: string;
  readonly maxContext: number;
  readonly names: readonly CapabilityName[];
}

export interface EngineClient {
  /** One whole answer. */
  chat(request: EngineChatRequest, options: CallOptions): Promise<EngineAnswer>;
  /** Frame by frame. Ends only after the engine said that the answer is complete; anything else throws. Leaving the loop cancels. */
  chatStream(request: EngineChatRequest, options: StreamOptions): AsyncIterable<EngineFrame>;
  completions(request: CompletionRequest, options: CallOptions): Promise<CompletionChoice[]>;
  /** Logprobs of given answers, one list for each item, as long as its answer. */
  score(items: readonly ScoreItem[], options: CallOptions & { readonly model: string }): Promise<number[][]>;
  tokenize(request: TokenizeRequest, options: CallOptions): Promise<number[]>;
  models(options: CallOptions): Promise<EngineModel[]>;
  health(options: CallOptions): Promise<EngineHealth>;
  /** `path` is a folder on the engine's disk. A name that is loaded is refused (`adapter_already_loaded`). */
  loadAdapter(name: string, path: string, options: CallOptions): Promise<void>;
  unloadAdapter(name: string, options: CallOptions): Promise<void>;
  /** Asks the engine for one of everything and says what came back. Slow the first time: engines compile on demand. */
  probe(options: CallOptions): Promise<Capabilities>;
  /** Ends every call at once. */
  close(): Promise<void>;
  /** Takes no further call; resolves when those in flight have come to their end. */
  leave(): Promise<void>;
}
