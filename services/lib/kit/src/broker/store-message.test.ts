import { expect, it } from 'vitest';
import type { Broker } from './connect.js';
import { storeMessage } from './store-message.js';

/** A broker that is up and answers every publish so. */
function answering(answer: object): Broker {
  const ask = () => Promise.resolve({ json: () => answer });
  return { status: () => 'up', ask } as unknown as Broker;
}

const message = { subject: 'a', stream: 'A', data: new Uint8Array(), expectLast: 0, timeoutMs: 1, doing: 'publish a' };

it('a message is refused when another message is the last, which is named', async () => {
  const error = { code: 400, err_code: 10071, description: 'wrong last sequence: 7' };
  expect(await storeMessage(answering({ error }), message)).toEqual({ refused: true, last: 7 });
});

it('a message is neither stored nor refused while the copies have not decided on another: it waits, as for a broker that is away', async () => {
  const error = { code: 400, err_code: 10164, description: 'wrong last sequence' };
  await expect(storeMessage(answering({ error }), message)).rejects.toMatchObject({
    code: 'broker_unavailable',
    status: 503,
    retry: 'later',
  });
});
