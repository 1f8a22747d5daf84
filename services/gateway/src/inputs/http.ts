// The door for clients: routes, and what is true of every connection.
//
// Express finds the route and does nothing else: bodies are read by the handlers that want one.
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Duplex } from 'node:stream';
import express, { type Express, type Request, type Response } from 'express';
import { kitErrors } from '@backtalk/kit';
import { gatewayErrors } from '../errors.js';
import { openAiError } from '../domain/openai-error.js';
import { forCaller, nameRequest, sendError } from './answer.js';
import { chat } from './chat.js';
import { feedback } from './feedback.js';
import { handled } from './handled.js';
import { model, models } from './models.js';
import type { Parts } from './parts.js';
import { endSession } from './sessions.js';

const chatPath = '/v1/chat/completions';
const checkConnectionsMs = 500;
const keepAliveMs = 75_000;

export class HttpDoor {
  private readonly server: Server;
  private stopping = false;

  constructor(private readonly parts: Parts) {
    const { headersWaitMs, bodyWaitMs } = parts.config;
    const app = routes(parts);
    const options = {
      headersTimeout: headersWaitMs,
      requestTimeout: Math.max(bodyWaitMs, headersWaitMs),
      connectionsCheckingInterval: checkConnectionsMs,
      keepAliveTimeout: keepAliveMs,
      noDelay: true,
    };
    this.server = createServer(options, (request, response) => {
      if (this.stopping) response.setHeader('Connection', 'close');
      // The one busy route is found without a router.
      if (request.method === 'POST' && request.url === chatPath) void chat(parts, request, response);
      else app(request, response);
    });
    this.server.on('clientError', answerBrokenRequest);
  }

  /** The port that is really bound: the configured one may be 0. */
  get port(): number {
    return addressOf(this.server)?.port ?? this.parts.config.httpAddress.port;
  }

  start(): Promise<void> {
    const { host, port } = this.parts.config.httpAddress;
    return new Promise((resolve, reject) => {
      this.server.once('error', (error: NodeJS.ErrnoException) => {
        reject(kitErrors.addressInUse({ address: `${host}:${port}`, reason: error.code ?? 'unknown' }, error));
      });
      this.server.listen(port, host, resolve);
    });
  }

  /** Takes no new connections, lets answers in hand go on for a while, then cuts them. */
  async stop(): Promise<void> {
    const { clock, config } = this.parts;
    this.stopping = true;
    // An answer in hand said in its head that the connection stays: it ends when the answer has, or the stop would wait for it.
    this.server.keepAliveTimeout = 1;
    const closed = new Promise<void>((resolve) => this.server.close(() => resolve()));
    this.server.closeIdleConnections();
    const cancelCut = clock.timer(config.stopWaitMs, () => this.server.closeAllConnections());
    await closed.finally(cancelCut);
  }
}

function addressOf(server: Server): AddressInfo | undefined {
  const address = server.address();
  return typeof address === 'object' && address !== null ? address : undefined;
}

function routes(parts: Parts): Express {
  const app = express();
  app.disable('x-powered-by');
  app.disable('etag');
  app.use((request, response, next) => {
    nameRequest(request, response);
    next();
  });
  app.post(chatPath, (request, response) => chat(parts, request, response));
  app.all(chatPath, handled(parts, 'chat_completions', only('POST')));
  app.get(
    '/v1/models',
    handled(parts, 'models', (request, response) => models(parts, request, response)),
  );
  app.all('/v1/models', handled(parts, 'models', only('GET')));
  app.get(
    '/v1/models/:id',
    handled(parts, 'model', (request, response) => model(parts, request, response)),
  );
  app.all('/v1/models/:id', handled(parts, 'model', only('GET')));
  app.post(
    '/v1/feedback',
    handled(parts, 'feedback', (request, response) => feedback(parts, request, response)),
  );
  app.all('/v1/feedback', handled(parts, 'feedback', only('POST')));
  app.delete(
    '/v1/sessions/:id',
    handled(parts, 'sessions', (request, response) => endSession(parts, request, response)),
  );
  app.all('/v1/sessions/:id', handled(parts, 'sessions', only('DELETE')));
  app.use(handled(parts, 'unknown', () => Promise.reject(gatewayErrors.unknownRoute())));
  // Express calls this for addresses that cannot be decoded; handlers of ours never fail.
  app.use((_error: unknown, request: Request, response: Response, _next: unknown) =>
    sendError(request, response, forCaller(gatewayErrors.unknownRoute())),
  );
  return app;
}

function only(allow: string): () => Promise<void> {
  return () => Promise.reject(gatewayErrors.wrongMethod({ allow }));
}

/** Node's parser gave up, or the request came too slowly. There is no response object: the words go out as they are. */
function answerBrokenRequest(error: Error & { code?: string }, socket: Duplex): void {
  const isSlow = error.code === 'ERR_HTTP_REQUEST_TIMEOUT';
  if (!socket.writable || error.code === 'ECONNRESET') {
    socket.destroy();
    return;
  }
  const told = isSlow ? gatewayErrors.tooSlow() : gatewayErrors.invalidJson({ why: 'the request is not valid HTTP' });
  const { status, body } = openAiError(told);
  const text = JSON.stringify(body);
  const head = [
    `HTTP/1.1 ${status} ${isSlow ? 'Request Timeout' : 'Bad Request'}`,
    'Content-Type: application/json; charset=utf-8',
    `Content-Length: ${Buffer.byteLength(text)}`,
    'Connection: close',
  ];
  socket.end(`${head.join('\r\n')}\r\n\r\n${text}`, () => socket.destroy());
}
