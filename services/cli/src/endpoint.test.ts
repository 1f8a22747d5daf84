import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { expect, it } from 'vitest';
import type { Connection } from './connection.js';
import { askEndpoint } from './endpoint.js';

it.each([
  ['a page', 200, '<html>Welcome</html>'],
  ['nothing', 200, ''],
])('what answers with %s in place of JSON is said to be no gateway', async (_, status, text) => {
  const server = createServer((_request, response) => response.writeHead(status).end(text));
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const endpoint = `http://127.0.0.1:${String((server.address() as AddressInfo).port)}/v1`;
  const asking = askEndpoint({ connection: { endpoint } as Connection, apiKey: 'none' }, 'The list', 'GET', '/lessons');
  await expect(asking).rejects.toMatchObject({
    code: 'unreachable',
    message: `The gateway does not answer at ${endpoint}. Is Backtalk running? (npx backtalk doctor)`,
  });
  server.close();
});
