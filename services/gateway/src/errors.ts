// Every way in which the gateway refuses or fails, with the words that a client may read.
//
// Codes and shapes follow OpenAI's API, because clients branch on them. Messages never hold text of a conversation,
// a key, or the name of another tenant.
import { defineErrors } from '@backtalk/kit/pure';

interface NotInLog {
  readonly param: string;
  /** The caller's share of the day's log is used up: what was answered since is nowhere. */
  readonly isFull?: boolean;
}

const fullShare = (isFull = false) =>
  isFull ? ' (your share of the day’s log is full, and answers since are not kept)' : '';

/** The request itself is at fault: sending it again changes nothing. */
export const gatewayErrors = defineErrors('gateway', {
  invalidJson: {
    code: 'invalid_json',
    status: 400,
    retry: 'never',
    message: (p: { why: string }) => `The request body cannot be read as JSON: ${p.why}.`,
  },
  missingParameter: {
    code: 'missing_required_parameter',
    status: 400,
    retry: 'never',
    message: (p: { param: string }) => `Missing required parameter: '${p.param}'.`,
  },
  fenceUnknown: {
    code: 'fence_unknown',
    status: 400,
    retry: 'never',
    message: (p: { fence: number }) =>
      `No publisher can have reached the fence ${p.fence}: the log of weights ends before it.`,
  },
  invalidParameter: {
    code: 'invalid_value',
    status: 400,
    retry: 'never',
    message: (p: { param: string; why: string }) => `Invalid value for '${p.param}': ${p.why}.`,
  },
  unsupportedParameter: {
    code: 'unsupported_parameter',
    status: 400,
    retry: 'never',
    message: (p: { param: string; why: string }) => `Unsupported parameter: '${p.param}': ${p.why}.`,
  },
  /** By the code that Anthropic's clients know: they send the whole conversation from then on. */
  threadNotKept: {
    code: 'thread_unsupported_request',
    status: 400,
    retry: 'never',
    message: () => "Conversations are not kept for clients: send all messages, without 'thread'.",
  },
  contextTooLong: {
    code: 'context_length_exceeded',
    status: 400,
    retry: 'never',
    message: (p: { param: string; limit: number | undefined }) =>
      `This model's maximum context length is ${p.limit ?? 'smaller than what was asked for'}${p.limit === undefined ? '' : ' tokens'}. Shorten the messages or lower the number of tokens asked for.`,
  },
  wrongKey: {
    code: 'invalid_api_key',
    status: 401,
    retry: 'never',
    message: () => 'Incorrect API key provided.',
  },
  foreignRequest: {
    code: 'foreign_request',
    status: 403,
    retry: 'never',
    message: (p: { sign: string }) =>
      `Without keys only this machine's own programs are answered, at http://localhost or http://127.0.0.1, and of this request ${p.sign}. Make a key with "npx backtalk keys add" and send it as Authorization: Bearer.`,
  },
  unknownModel: {
    code: 'model_not_found',
    status: 404,
    retry: 'never',
    message: () => 'The model does not exist or is not loaded. GET /v1/models lists those that are.',
  },
  unknownTurn: {
    code: 'turn_not_found',
    status: 404,
    retry: 'never',
    message: () => 'No such turn.',
  },
  /** By the code that OpenAI's clients know. */
  previousResponseNotFound: {
    code: 'previous_response_not_found',
    status: 400,
    retry: 'never',
    message: ({ isFull }: NotInLog) =>
      `No answer of yours with this id is in the log, or not with all that was said before it${fullShare(isFull)}. Send the whole conversation as input.`,
  },
  itemNotFound: {
    code: 'item_not_found',
    status: 400,
    retry: 'never',
    message: ({ isFull }: NotInLog) =>
      `No item of an answer of yours with this id is in the log${fullShare(isFull)}. Send the items themselves (store: false).`,
  },
  lessonShared: {
    code: 'lesson_shared',
    status: 403,
    retry: 'never',
    message: () =>
      'This lesson holds for everyone of its tenant. It is changed with a key that speaks for them all (keys add --accept-user-field), in a request that names no user.',
  },
  lessonsFull: {
    code: 'lessons_full',
    status: 409,
    retry: 'never',
    message: ({ most }: { readonly most: number }) =>
      `${most} lessons are being learned or learned already, as many as are kept: for one more, retire one of them (DELETE /v1/lessons/{id}, npx backtalk lessons retire).`,
  },
  lessonDeclined: {
    code: 'lesson_declined',
    status: 403,
    retry: 'never',
    message: () =>
      'Nothing that comes with this key, or with X-Backtalk-Train: off, is learned from: no lesson is taught by it. One may be retired.',
  },
  unknownLesson: {
    code: 'lesson_not_found',
    status: 404,
    retry: 'never',
    message: () => 'No such lesson.',
  },
  unknownVersion: {
    code: 'version_not_found',
    status: 404,
    retry: 'never',
    message: () => 'No such version, or one of many versions ago. GET /v1/versions lists those that are known.',
  },
  unknownSession: {
    code: 'session_not_found',
    status: 404,
    retry: 'never',
    message: () => 'No such session.',
  },
  sessionOver: {
    code: 'session_over',
    status: 409,
    retry: 'never',
    message: () =>
      'The session is over: it was ended before, with another outcome or none, or nothing was asked in it for too long. An outcome is given once, in place of an end.',
  },
  unknownRoute: {
    code: 'unknown_url',
    status: 404,
    retry: 'never',
    message: () =>
      'Unknown request URL. OpenAI’s clients take a base URL that ends in /v1, Anthropic’s the same without it.',
  },
  /** Clients take it for a service without the route, and guess. */
  notCounted: {
    code: 'not_supported',
    status: 404,
    retry: 'never',
    message: () => 'The engine that answers here counts no tokens.',
  },
  wrongMethod: {
    code: 'method_not_allowed',
    status: 405,
    retry: 'never',
    message: (p: { allow: string }) => `This method is not allowed here. Allowed: ${p.allow}.`,
  },
  tooSlow: {
    code: 'request_timeout',
    status: 408,
    retry: 'later',
    message: () => 'The request did not arrive in time.',
  },
  bodyTooLarge: {
    code: 'request_too_large',
    status: 413,
    retry: 'never',
    message: (p: { limitBytes: number }) => `The request body is larger than ${p.limitBytes} bytes.`,
  },
  earlierTooLarge: {
    code: 'request_too_large',
    status: 413,
    retry: 'never',
    message: (p: { param: 'previous_response_id' | 'input'; limitBytes: number }) =>
      `What '${p.param}' names by ids is more than the ${p.limitBytes} bytes that are fetched so. Send the whole conversation as input.`,
  },
  wrongMediaType: {
    code: 'unsupported_media_type',
    status: 415,
    retry: 'never',
    message: (p: { why: string }) => `${p.why} Send Content-Type: application/json, not compressed.`,
  },
  promptGivenUp: {
    code: 'prompt_given_up',
    status: 422,
    retry: 'never',
    message: (p: { retryAfterSeconds: number }) =>
      `Two engines ended while they had this prompt. It is sent to no other for ${p.retryAfterSeconds} s: change it.`,
  },
  rateLimited: {
    code: 'rate_limit_exceeded',
    status: 429,
    retry: 'later',
    message: (p: { what: string; retryAfterSeconds: number }) => `This key's limit of ${p.what} is reached.`,
  },
  clientGone: {
    code: 'client_gone',
    status: 499,
    retry: 'never',
    message: () => 'The client went away before the answer was complete.',
  },

  // The gateway, or what it stands on, is at fault: the same request may succeed later.
  noEngine: {
    code: 'no_engine',
    status: 503,
    retry: 'later',
    message: (p: { version: string; retryAfterSeconds: number }) =>
      `No engine that is ready holds ${p.version}. It may be loading: try again.`,
  },
  engineUnavailable: {
    code: 'engine_unavailable',
    status: 503,
    retry: 'later',
    message: () => 'The model server did not answer. Try again.',
  },
  engineBroke: {
    code: 'engine_failed',
    status: 502,
    retry: 'later',
    message: () => 'The model server failed in the middle of the answer. Try again.',
  },
  engineTimeout: {
    code: 'engine_timeout',
    status: 504,
    retry: 'later',
    message: () => 'The model server did not answer in time. Try again.',
  },
  captureUnavailable: {
    code: 'capture_unavailable',
    status: 503,
    retry: 'later',
    message: () => 'Turns cannot be stored at the moment. Try again.',
  },
  logUnavailable: {
    code: 'log_unavailable',
    status: 503,
    retry: 'later',
    message: () => 'The log cannot be reached at the moment. Try again.',
  },
  overloaded: {
    code: 'server_overloaded',
    status: 429,
    retry: 'later',
    message: () => 'All places are taken at the moment. Try again.',
  },
  internal: {
    code: 'internal_error',
    status: 500,
    retry: 'later',
    message: () => 'Something went wrong in the gateway. Try again.',
  },

  // What never reaches a client: conditions of the gateway's own parts.
  spoolFull: {
    code: 'spool_full',
    retry: 'later',
    message: (p: { bytesMax: number }) => `The spool holds its limit of ${p.bytesMax} bytes.`,
  },
  spoolFailed: {
    code: 'spool_failed',
    retry: 'later',
    message: () => 'The spool cannot be written.',
  },
  spoolRecordInvalid: {
    code: 'spool_record_invalid',
    retry: 'never',
    message: (p: { fact: string }) => `A record of ${p.fact} in the spool cannot be decoded.`,
  },
  keysFileInvalid: {
    code: 'keys_file_invalid',
    retry: 'stop',
    message: (p: { why: string }) => `The file named by BACKTALK_KEYS_FILE cannot be used: ${p.why}.`,
  },
  readerTooSlow: {
    code: 'reader_too_slow',
    retry: 'never',
    message: () => 'The client did not read its answer.',
  },
});
