// The floor: a bare pipe on node:http that hands requests to an engine and its bytes back, and does nothing else.
// In: `--port`, `--engine http://host:port`. Out: a server that lives until it is killed.
import { Agent, createServer, request } from 'node:http';
import { parseArgs } from 'node:util';

const { values } = parseArgs({ options: { port: { type: 'string' }, engine: { type: 'string' } } });
const { hostname, port } = new URL(values.engine ?? '');
const agent = new Agent({ keepAlive: true });

createServer({ noDelay: true }, (asked, response) => {
  const upstream = request({ hostname, port, agent, path: asked.url, method: asked.method, headers: asked.headers });
  upstream.once('response', (answer) => {
    response.writeHead(answer.statusCode ?? 502, answer.headers);
    answer.pipe(response);
  });
  upstream.once('error', () => response.destroy());
  response.once('close', () => upstream.destroy());
  asked.pipe(upstream);
}).listen(Number(values.port), '127.0.0.1');
