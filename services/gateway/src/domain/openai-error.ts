// How does a client of OpenAI's API read an error?
//
// In: an error of the house. Out: status, body and headers in OpenAI's shape. Only the catalogue's words go out, never
// those of a cause. Pure.
import type { BacktalkError } from '@backtalk/kit';

interface OpenAiError {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: {
    readonly error: {
      readonly message: string;
      readonly type: string;
      readonly param: string | null;
      readonly code: string;
    };
  };
}

export function openAiError({ status = 500, message, code, detail }: BacktalkError): OpenAiError {
  const { param, retryAfterSeconds, allow } = detail;
  const headers: Record<string, string> = {};
  if (typeof retryAfterSeconds === 'number') headers['Retry-After'] = String(retryAfterSeconds);
  if (typeof allow === 'string') headers['Allow'] = allow;
  let type = status < 500 ? 'invalid_request_error' : 'server_error';
  if (status === 401) type = 'authentication_error';
  if (status === 429) type = 'rate_limit_error';
  const error = { message, type, param: typeof param === 'string' ? param : null, code };
  return { status, headers, body: { error } };
}
