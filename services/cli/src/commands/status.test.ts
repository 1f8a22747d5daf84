import { createServer, type Server } from 'node:http';
import { afterEach, expect, it } from 'vitest';
import { partStatus } from './status.js';

let server: Server;

afterEach(() => new Promise((resolve) => server.close(resolve)));

/** Health and metrics of a part that is ready. */
async function readyPart(metrics: string): Promise<string> {
  server = createServer((request, response) => response.end(request.url === '/metrics' ? metrics : '{}'));
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const address = server.address();
  return `http://127.0.0.1:${typeof address === 'object' ? (address?.port ?? 0) : 0}`;
}

it('a judge whose votes do not count is ready, and status says that they do not', async () => {
  const url = await readyPart('# TYPE x gauge\nbacktalk_judge_votes_trusted 0\n');
  const why = 'its votes do not count: too few planted turns are judged right';
  expect(await partStatus('judge', url)).toEqual({ part: 'judge', url, ready: true, why });
});

it('a judge whose votes count has nothing to say', async () => {
  const url = await readyPart('backtalk_judge_votes_trusted 1\n');
  expect(await partStatus('judge', url)).toEqual({ part: 'judge', url, ready: true, why: '' });
});
