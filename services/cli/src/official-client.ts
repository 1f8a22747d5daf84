// Chat completions, by the official client: apart from all other requests, because it takes long to load.
import OpenAI from 'openai';
import { z } from 'zod';
import { afterMs } from './endpoint.js';
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
