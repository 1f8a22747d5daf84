// The gateway as any client sees it: chat completions by the official client, all else by plain requests.
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
  throw cliErrors.refused({ what, status: response.status, why });
}
