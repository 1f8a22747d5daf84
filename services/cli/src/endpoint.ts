// The gateway as any client sees it: chat completions by the official client, all else by plain requests.
import { asBacktalkError, backOffMs, systemClock } from '@backtalk/kit';
import OpenAI from 'openai';
import { z } from 'zod';
import { cliErrors } from './errors.js';
import type { CommandContext } from './shell.js';

export interface ChatMessage {
  readonly role: 'system' | 'user' | 'assistant';
  readonly content: string;
}

const answerWithinMs = 180_000;

export function endpointClient(baseURL: string, apiKey: string): OpenAI {
  return new OpenAI({ baseURL, apiKey, timeout: answerWithinMs, maxRetries: 4 });
}

const requestWithinMs = 10_000;
const refusal = z.object({ error: z.object({ message: z.string() }) });

/**
 * What the endpoint answers; a refusal is an error in its own words.
 * @param what is asked for, as the first word of what is said when it is refused
 */
export async function askEndpoint(
  { connection, apiKey }: Pick<CommandContext, 'connection' | 'apiKey'>,
  what: string,
  method: 'GET' | 'POST' | 'PATCH',
  path: string,
  body?: object,
): Promise<unknown> {
  const url = `${connection.endpoint}${path}`;
  const response = await fetch(url, {
    method,
    headers: { 'content-type': 'application/json', authorization: `Bearer ${apiKey}` },
    signal: AbortSignal.timeout(requestWithinMs),
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  }).catch((error: unknown) => {
    throw cliErrors.unreachable({ what: 'The gateway', url: connection.endpoint }, error);
  });
  const answer: unknown = await response.json().catch(() => undefined);
  if (response.ok && answer !== undefined) return answer;
  const why = refusal.safeParse(answer).data?.error.message ?? 'no reason was given';
  throw cliErrors.refused({ what, status: response.status, why, afterMs: afterMs(response.headers) });
}

function afterMs(headers: Headers): number | undefined {
  const seconds = Number(headers.get('retry-after') ?? Number.NaN);
  return Number.isFinite(seconds) ? seconds * 1_000 : undefined;
}

const completion = z.object({ choices: z.array(z.object({ message: z.looseObject({}) })).min(1) });

export interface Answered {
  /** As it came, tool calls and all. */
  readonly message: object;
  readonly version: string;
}

/** One answer to messages of any kind; a refusal is an error in the endpoint's words. Tried once. */
export async function answerOf(
  { connection, apiKey }: Pick<CommandContext, 'connection' | 'apiKey'>,
  { body, headers }: { readonly body: object; readonly headers: Readonly<Record<string, string>> },
  signal: AbortSignal,
): Promise<Answered> {
  const client = endpointClient(connection.endpoint, apiKey);
  try {
    const request = { body, headers, signal, maxRetries: 0 };
    const { data, response } = await client.post('/chat/completions', request).withResponse();
    const message = completion.safeParse(data).data?.choices[0]?.message;
    if (message === undefined)
      throw cliErrors.refused({ what: 'An answer', status: response.status, why: 'it was none' });
    return { message, version: response.headers.get('x-backtalk-weights') ?? '' };
  } catch (error) {
    throw endpointError(error, connection.endpoint);
  }
}

/** What the official client throws, as an error of ours; anything else as it is. */
export function endpointError(error: unknown, url: string): unknown {
  // The connection was lost in the middle of an answer: that is said by what reads it.
  if (error instanceof TypeError && error.message === 'terminated')
    return cliErrors.brokenOff({ why: 'the connection to the gateway was lost. Say it again.' }, error);
  if (error instanceof OpenAI.APIUserAbortError || !(error instanceof OpenAI.APIError)) return error;
  if (error instanceof OpenAI.APIConnectionError) return cliErrors.unreachable({ what: 'The gateway', url }, error);
  const { status, message: why, headers: given } = error as InstanceType<typeof OpenAI.APIError>;
  // It came in the middle of an answer that had begun well.
  if (status === undefined) return cliErrors.brokenOff({ why }, error);
  return cliErrors.refused({ what: 'An answer', status, why, afterMs: given && afterMs(given) }, error);
}

/** As long as a gateway takes to start anew, and a minute's limit to end. */
const patienceMs = 90_000;
const backOff = { firstMs: 500, mostMs: 8_000 };

/** Asks again where the endpoint is away, busy or limits its callers: to say the same once more changes nothing. */
export async function patiently<T>(ask: () => Promise<T>, signal: AbortSignal): Promise<T> {
  const untilMs = systemClock.now() + patienceMs;
  for (let tries = 1; ; tries += 1) {
    try {
      return await ask();
    } catch (error) {
      const { code, detail } = asBacktalkError(error);
      const status = code === 'refused' ? Number(detail['status']) : 0;
      const mayPass = code === 'unreachable' || status === 429 || status >= 500;
      const waitMs = Math.max(Number(detail['afterMs'] ?? 0), backOffMs(tries, backOff));
      if (!mayPass || signal.aborted || systemClock.now() + waitMs > untilMs) throw error;
      await systemClock.sleep(waitMs, signal);
    }
  }
}
