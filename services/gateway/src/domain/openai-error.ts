// How does a client of OpenAI's API read an error?
//
// In: an error of the house. Out: status, body and headers in OpenAI's shape. Only the catalogue's words go out, never
// those of a cause. Pure.
import type { BacktalkError } from '@backtalk/kit';

export interface OpenAiError {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: { readonly error: OpenAiErrorBody };
}

export interface OpenAiErrorBody {
  readonly message: string;
  readonly type: string;
  readonly param: string | null;
  readonly code: string;
}

export function openAiError(error: BacktalkError): OpenAiError {
  const status = error.status ?? 500;
  return {
    status,
    headers: headersOf(error),
    body: { error: { message: error.message, type: typeOf(status), param: paramOf(error), code: error.code } },
  };
}

function typeOf(status: number): string {
  if (status === 401) return 'authentication_error';
  if (status === 429) return 'rate_limit_error';
  return status < 500 ? 'invalid_request_error' : 'server_error';
}

function paramOf({ detail }: BacktalkError): string | null {
  return typeof detail['param'] === 'string' ? detail['param'] : null;
}

function headersOf({ detail }: BacktalkError): Record<string, string> {
  const headers: Record<string, string> = {};
  if (typeof detail['retryAfterSeconds'] === 'number') headers['Retry-After'] = String(detail['retryAfterSeconds']);
  if (typeof detail['allow'] === 'string') headers['Allow'] = detail['allow'];
  return headers;
}
