// The HTTP server that clients connect to: what is true of every connection, whatever its requests ask for.
import { createServer, type RequestListener, type Server } from 'node:http';
import type { Duplex } from 'node:stream';
import { kitErrors, type Clock } from '@backtalk/kit';
import type { GatewayConfig } from '../config.js';
import { gatewayErrors } from '../errors.js';
import { openAiError } from '../domain/openai-error.js';

const checkConnectionsMs = 500;
const keepAliveMs = 75_000;

export class HttpServer {
  private readonly server: Server;
  private stopping = false;

  constructor(
    listener: RequestListener,
    private readonly config: Pick<GatewayConfig, 'httpAddress' | 'headersWaitMs' | 'bodyWaitMs' | 'stopWaitMs'>,
    private readonly clock: Clock,
  ) {
    const { headersWaitMs, bodyWaitMs } = config;
    const options = {
      headersTimeout: headersWaitMs,
      requestTimeout: Math.max(bodyWaitMs, headersWaitMs),
      connectionsCheckingInterval: checkConnectionsMs,
      keepAliveTimeout: keepAliveMs,
      noDelay: true,
    };
    this.server = createServer(options, (request, response) => {
      if (this.stopping) response.setHeader('Connection', 'close');
      listener(request, response);
    });
    this.server.on('clientError', answerBrokenRequest);
  }

  /** The port that is really bound: the configured one may be 0. */
  get port(): number {
    const bound = this.server.address();
    return typeof bound === 'object' && bound !== null ? bound.port : this.config.httpAddress.port;
  }

  start(): Promise<void> {
    const { host, port } = this.config.httpAddress;
    return new Promise((resolve, reject) => {
      this.server.once('error', (error: NodeJS.ErrnoException) => {
        reject(kitErrors.addressInUse({ address: `${host}:${port}`, reason: error.code ?? 'unknown' }, error));
      });
      this.server.listen(port, host, resolve);
    });
  }

  /** Takes no new connections, lets answers in flight go on for a while, then cuts them. */
  async stop(): Promise<void> {
    this.stopping = true;
    // An answer in flight said in its head that the connection stays: it ends when the answer has, or the stop would wait for it.
    this.server.keepAliveTimeout = 1;
    const closed = new Promise<void>((resolve) => this.server.close(() => resolve()));
    this.server.closeIdleConnections();
    const cancelCut = this.clock.timer(this.config.stopWaitMs, () => this.server.closeAllConnections());
    await closed.finally(cancelCut);
  }
}

/** Node's parser gave up, or the request came too slowly. There is no response object: the words go out as they are. */
function answerBrokenRequest(error: Error & { code?: string }, socket: Duplex): void {
  const isSlow = error.code === 'ERR_HTTP_REQUEST_TIMEOUT';
  if (!socket.writable || error.code === 'ECONNRESET') {
    socket.destroy();
    return;
  }
  const refusal = isSlow
    ? gatewayErrors.tooSlow()
    : gatewayErrors.invalidJson({ why: 'the request is not valid HTTP' });
  const { status, body } = openAiError(refusal);
  const text = JSON.stringify(body);
  const head = [
    `HTTP/1.1 ${status} ${isSlow ? 'Request Timeout' : 'Bad Request'}`,
    'Content-Type: application/json; charset=utf-8',
    `Content-Length: ${Buffer.byteLength(text)}`,
    'Connection: close',
  ];
  socket.end(`${head.join('\r\n')}\r\n\r\n${text}`, () => socket.destroy());
}
