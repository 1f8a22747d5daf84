// How does a client of Anthropic's API read an error?
//
// In: an error of the house. Out: status, body and headers in Anthropic's shape, or the event that ends a stream. Only the
// catalogue's words go out, never those of a cause. Pure.
import type { BacktalkError, JsonObject } from '@backtalk/kit';
import { openAiError } from './openai-error.js';

interface AnthropicError {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: {
    readonly type: 'error';
    readonly error: {
      readonly type: string;
      readonly message: string;
      readonly details: { readonly error_code: string };
    };
  };
}

const types: Readonly<Record<number, string>> = {
  401: 'authentication_error',
  403: 'permission_error',
  404: 'not_found_error',
  413: 'request_too_large',
  429: 'rate_limit_error',
  503: 'overloaded_error',
  504: 'timeout_error',
};

export function anthropicError(error: BacktalkError): AnthropicError {
  const { status, headers, body } = openAiError(error);
  const type = types[status] ?? (status < 500 ? 'invalid_request_error' : 'api_error');
  const { message: said, code } = body.error;
  // By these words clients know that a conversation is to be shortened.
  const message = code === 'context_length_exceeded' ? `prompt is too long: ${said}` : said;
  return { status, headers, body: { type: 'error', error: { type, message, details: { error_code: code } } } };
}

/** Of a stream. */
export function anthropicEvent(type: string, fields: JsonObject): string {
  return `event: ${type}\ndata: ${JSON.stringify({ type, ...fields })}\n\n`;
}

export function errorEvent(error: BacktalkError): string {
  return anthropicEvent('error', { error: anthropicError(error).body.error });
}
