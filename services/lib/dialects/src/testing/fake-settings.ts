// What can be set on a fake engine, while it runs, and what it counts.

export interface FakeFaults {
  /** Ends streams after this many tokens: `socket` cuts the connection, `error_frame` sends an SSE error and `[DONE]`. */
  dieAfterTokens?: { readonly tokens: number; readonly how: 'socket' | 'error_frame' };
  /** Chat and completions never answer. */
  hang?: boolean;
  /** Chat and completions are refused. */
  busy?: boolean;
  /** Chat and completions fail with this status. */
  failStatus?: number;
  /** `/health` says that the engine is dead. */
  dead?: boolean;
  /** Untruths about what was generated; `other_template`: `/tokenize` renders messages otherwise than chat does. */
  lie?: 'no_ids' | 'wrong_count' | 'no_logprobs' | 'not_finite' | 'wrong_scores' | 'other_template';
  /** Untruths about the weights: what the first frames name, and what the last ones do; a whole answer names the first. */
  models?: { readonly first?: string; readonly last?: string };
  /** Streams end with `finish_reason: "abort"` after this many tokens. */
  abortAfterTokens?: number;
  /** Loading of adapters answers with this status. */
  loadStatus?: number;
  /** Unloading of adapters answers with this status, and unloads nothing. */
  unloadStatus?: number;
  /** What an engine was not started with: paths for adapters, a parser of tool calls. */
  lacks?: 'adapters' | 'tools';
}

export interface FakeSettings {
  /** Milliseconds before the first token, and before each token. */
  firstTokenMs: number;
  tokenMs: number;
  /** Tokens of an answer, the end token among them, if `max_tokens` allows. */
  answerTokens: number;
  /** Requests that generate at once; more wait, up to `queueMax`, then 503. */
  places: number;
  queueMax: number;
  maxContext: number;
  /** Adapters at once, beyond which loading is refused. */
  adaptersMax: number;
  /** Beyond them it unloads what was asked least recently, as SGLang does. */
  evicts?: boolean;
  /** The highest rank of an adapter. */
  rankMax: number;
  faults: FakeFaults;
  /** Called with the body of every chat request. */
  heard?: (body: unknown) => void;
  /** Called with the body of every `/tokenize`. */
  tokenizeHeard?: (body: unknown) => void;
  /** The status with which `/tokenize` fails on a body. */
  tokenizeFails?: (body: unknown) => number | undefined;
  /** The answer to a conversation, in place of a generated one. */
  reply?: (messages: readonly { role: string; content: string }[], model: string) => string | undefined;
  /** By what a model's logprobs of its own answers are multiplied: below 1 it is surer than its weights make it. */
  surprise?: (model: string) => number;
  /** What follows a prompt of a completion, in place of generated text. */
  continues?: (promptIds: readonly number[], model: string) => string | undefined;
  /** Added to the logprob of the last of scored ids, in nats. */
  odds?: (ids: readonly number[], model: string) => number;
  /** Alternatives for the first token after a text prompt, by token text, in place of generated ones. */
  alternatives?: (prompt: string, model: string) => Readonly<Record<string, number>> | undefined;
}

export interface FakeCounts {
  requests: number;
  running: number;
  cancelled: number;
  tokens: number;
  /** Requests by the model they named. */
  byModel: Record<string, number>;
  /** Names in the order of the calls that succeeded. */
  loads: string[];
  loadsRefused: number;
  unloads: string[];
  unloadsRefused: number;
}

export const defaultSettings: FakeSettings = {
  firstTokenMs: 0,
  tokenMs: 0,
  answerTokens: 12,
  places: 256,
  queueMax: 1_024,
  maxContext: 8_192,
  adaptersMax: 8,
  rankMax: 64,
  faults: {},
};

export function noCounts(): FakeCounts {
  return {
    requests: 0,
    running: 0,
    cancelled: 0,
    tokens: 0,
    byModel: {},
    loads: [],
    loadsRefused: 0,
    unloads: [],
    unloadsRefused: 0,
  };
}
