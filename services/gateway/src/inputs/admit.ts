// Lets a request in, whichever it is: by its key, a free slot, its key's minute, and room for its body.
//
// In: a request of which only the head was read. Out: what its handler may use; slot and room are given back when the
// answer is over, and its client has read it or was cut. Where many begin at once, keys take turns.
import type { IncomingMessage, ServerResponse } from 'node:http';
import { gatewayErrors } from '../errors.js';
import type { BodyRoom } from '../domain/body-budget.js';
import { countsByMinute, readingOf, secondsToNextMinute, type Grant } from '../domain/caller.js';
import type { Parts } from './parts.js';
import { delivered } from './stream-writer.js';

export interface Admission {
  readonly keyId: string;
  readonly grant: Grant;
  readonly room: BodyRoom;
}

type Work = (admission: Admission) => Promise<void> | void;

/** As OpenAI's clients send it, or Anthropic's. */
function keyOf({ headers }: IncomingMessage): string | undefined {
  const key = headers['x-api-key'];
  return headers.authorization ?? (typeof key === 'string' ? `Bearer ${key}` : undefined);
}

export async function admitted(
  { config, clock, events, access }: Parts,
  request: IncomingMessage,
  response: ServerResponse,
  work: Work,
): Promise<void> {
  const { keyId, grant } = access.keys.identify(keyOf(request));
  const { tenant } = access.callers.of(keyId, grant, undefined);
  const leave = access.slots.enter(keyId, grant.limits.concurrency, tenant);
  const room = access.bodies.room(keyId, tenant);
  try {
    await access.fair.of(keyId);
    const { of, limits } =
      request.method === 'GET' ? readingOf(keyId, grant.limits) : { of: keyId, limits: grant.limits };
    if (countsByMinute(limits)) {
      const what = await access.minutes.reached(of, limits);
      if (what !== undefined)
        throw gatewayErrors.rateLimited({ what, retryAfterSeconds: secondsToNextMinute(clock.now()) });
    }
    await work({ keyId, grant, room });
    if (!(await delivered(response, config.readerWaitMs))) events.readerCut();
  } finally {
    room.leave();
    leave();
  }
}
