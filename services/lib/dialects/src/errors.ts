// Every way in which a call to an engine fails, in words that a caller may read.
//
// Engine errors are translated here and nowhere else. Messages never hold text of a conversation.
import { defineErrors, isBacktalkError, type BacktalkError } from '@backtalk/kit';

const specs = {
  modelNotFound: {
    code: 'model_not_found',
    status: 404,
    retry: 'never',
    message: (p: { model: string }) => `The engine does not hold the model "${p.model}".`,
  },
  contextLengthExceeded: {
    code: 'context_length_exceeded',
    status: 400,
    retry: 'never',
    message: (p: { param: string; limit?: number | undefined }) =>
      `The prompt and max_tokens are longer than the model's context${p.limit === undefined ? '' : ` of ${p.limit} tokens`}. Shorten the messages or lower max_tokens.`,
  },
  invalidRequest: {
    code: 'invalid_request',
    status: 400,
    retry: 'never',
    message: (p: { param?: string | undefined; why?: string | undefined }) =>
      `The engine refused the request${p.param === undefined ? '' : `, parameter "${p.param}"`}${p.why === undefined ? '.' : `: ${p.why}`}`,
  },
  overloaded: {
    code: 'engine_overloaded',
    status: 503,
    retry: 'later',
    /** `isAsked`: the engine itself named the time, so that nothing is to be asked before. */
    message: (p: { retryAfterSeconds: number; isAsked?: boolean }) =>
      `All places of the engine are taken. Try again in ${p.retryAfterSeconds} s.`,
  },
  unreachable: {
    code: 'engine_unreachable',
    status: 503,
    retry: 'later',
    message: (p: { why: string }) => `The engine cannot be reached (${p.why}).`,
  },
  connectionLost: {
    code: 'engine_connection_lost',
    status: 503,
    retry: 'later',
    message: (p: { why: string }) => `The engine's connection broke after the request was sent (${p.why}).`,
  },
  failed: {
    code: 'engine_failed',
    status: 502,
    retry: 'later',
    message: (p: { engineStatus: number }) => `The engine failed with status ${p.engineStatus}.`,
  },
  streamBroken: {
    code: 'engine_stream_broken',
    status: 502,
    retry: 'later',
    message: (p: { why: string }) => `The engine stopped in the middle of its answer (${p.why}).`,
  },
  timeout: {
    code: 'engine_timeout',
    status: 504,
    retry: 'later',
    message: (p: { what: string; ms: number }) => `The engine did not answer in time (${p.what}, ${p.ms} ms).`,
  },
  aborted: {
    code: 'request_aborted',
    status: 499,
    retry: 'never',
    message: () => 'The caller went away before the answer was complete.',
  },
  replyInvalid: {
    code: 'engine_reply_invalid',
    status: 502,
    retry: 'later',
    message: (p: { what: string }) => `The engine's reply cannot be understood (${p.what}).`,
  },
  unauthorized: {
    code: 'engine_unauthorized',
    status: 502,
    retry: 'later',
    message: () => 'The engine refuses the key it was given. Set BACKTALK_ENGINE_KEY.',
  },
  unsupported: {
    code: 'engine_unsupported',
    status: 501,
    retry: 'never',
    message: (p: { what: string; dialect: string }) => `An engine of dialect ${p.dialect} cannot do this: ${p.what}.`,
  },
  adapterAlreadyLoaded: {
    code: 'adapter_already_loaded',
    status: 400,
    retry: 'never',
    message: (p: { name: string }) => `The engine already holds an adapter named "${p.name}".`,
  },
  adapterNotLoaded: {
    code: 'adapter_not_loaded',
    status: 404,
    retry: 'never',
    message: (p: { name: string }) => `The engine holds no adapter named "${p.name}".`,
  },
  adapterPathMissing: {
    code: 'adapter_path_missing',
    status: 404,
    retry: 'later',
    message: (p: { name: string }) => `The engine finds no files for adapter "${p.name}" on its disk.`,
  },
  adapterRefused: {
    code: 'adapter_refused',
    status: 400,
    retry: 'never',
    message: (p: { name: string; engineStatus: number }) =>
      `The engine refuses adapter "${p.name}" (status ${p.engineStatus}): its rank, modules or files do not fit.`,
  },
} as const;

export const engineErrors = defineErrors('dialects', specs);
export type EngineErrorCode = (typeof specs)[keyof typeof specs]['code'];

export function isEngineError(error: unknown, ...codes: readonly EngineErrorCode[]): error is BacktalkError {
  return isBacktalkError(error) && codes.some((code) => code === error.code);
}
