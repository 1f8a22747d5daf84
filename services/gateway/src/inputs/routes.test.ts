import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { createLogger, Metrics } from '@backtalk/kit';
import { afterEach, describe, expect, it } from 'vitest';
import { createEvents } from '../events.js';
import type { Parts } from './parts.js';
import { createRoutes } from './routes.js';

let server: Server;
const unhandled: unknown[] = [];
const watch = (error: unknown) => unhandled.push(error);

afterEach(() => {
  process.off('unhandledRejection', watch);
  server.close();
  server.closeAllConnections();
});

/** Routes whose parts fail in ways that nothing foresees. */
async function listening(changes: Partial<Parts['events']>): Promise<string> {
  const events = {
    ...createEvents(createLogger({ service: 'gateway', level: 'silent' }), new Metrics('gateway')),
    ...changes,
  };
  process.on('unhandledRejection', watch);
  server = createServer(createRoutes({ events } as unknown as Parts, []));
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return `http://127.0.0.1:${String((server.address() as AddressInfo).port)}`;
}

const ask = async (url: string, path: string) => {
  const method = path === 'models' ? 'GET' : 'POST';
  const response = await fetch(`${url}/v1/${path}`, { method, body: method === 'GET' ? null : '{}' });
  return { status: response.status, body: await response.json() };
};

describe.each(['chat/completions', 'chat/completions?beta=true', 'models'])('a throw in the middle of %s', (path) => {
  it('a handler’s throw is answered with 500 in OpenAI’s shape', async () => {
    const url = await listening({});
    expect(await ask(url, path)).toMatchObject({ status: 500, body: { error: { code: 'internal_error' } } });
    expect(unhandled).toEqual([]);
  });

  it('answers 500, and ends no process, when what handles the first failure throws too', async () => {
    const url = await listening({
      refused: () => {
        throw new TypeError('the log is full');
      },
    });
    expect(await ask(url, path)).toMatchObject({ status: 500, body: { error: { code: 'internal_error' } } });
    expect((await ask(url, path)).status).toBe(500);
    expect(unhandled).toEqual([]);
  });
});
