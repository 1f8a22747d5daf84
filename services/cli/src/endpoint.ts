// The gateway as any client sees it, by plain requests: all but chat completions.
import { asBacktalkError, backOffMs, systemClock } from '@backtalk/kit';
import { z } from 'zod';
import { cliErrors } from './errors.js';
import type { CommandContext } from './shell.js';

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
  // An answer that does not end in time, and one of another program, are none.
  const answer: unknown = await response.json().catch(() => undefined);
  if (response.ok && answer === undefined)
    throw cliErrors.unreachable({ what: 'The gateway', url: connection.endpoint });
  if (response.ok) return answer;
  const why = refusal.safeParse(answer).data?.error.message ?? 'no reason was given';
  throw cliErrors.refused({ what, status: response.status, why, afterMs: afterMs(response.headers) });
}

/** How long a refusal asks to wait. */
export function afterMs(headers: Headers): number | undefined {
  const seconds = Number(headers.get('retry-after') ?? Number.NaN);
  return Number.isFinite(seconds) ? seconds * 1_000 : undefined;
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
