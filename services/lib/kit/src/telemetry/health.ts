// The side door for operators: /livez says that the process turns, /readyz says whether it can do its work and why not,
// /metrics gives the numbers. It asks no dependency anything: checks report what the service already knows.
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { Address } from '../config/setting.js';
import { asBacktalkError, kitErrors } from '../errors/backtalk-error.js';
import type { Logger } from './logger.js';
import type { Metrics } from './metrics.js';

export interface HealthOptions {
  readonly address: Address;
  readonly metrics: Metrics;
  readonly logger: Logger;
}

/** True, or the reason why the service is not ready. It answers at once, from memory. */
export type ReadyCheck = () => true | string;

export class Health {
  private readonly checks = new Map<string, ReadyCheck>();
  private readonly server: Server;

  constructor(private readonly options: HealthOptions) {
    this.server = createServer((request, response) => {
      this.answer(request, response).catch((error: unknown) => {
        options.logger.error('health_answer_failed', { error: asBacktalkError(error) });
        response.destroy();
      });
    });
  }

  check(name: string, ready: ReadyCheck): void {
    this.checks.set(name, ready);
  }

  /** The port that is really bound: the configured one may be 0. */
  get port(): number {
    const bound = this.server.address();
    return typeof bound === 'object' && bound !== null ? bound.port : this.options.address.port;
  }

  async start(): Promise<void> {
    const { host, port } = this.options.address;
    await new Promise<void>((resolve, reject) => {
      this.server.once('error', (error: NodeJS.ErrnoException) => {
        reject(kitErrors.addressInUse({ address: `${host}:${port}`, reason: error.code ?? 'unknown' }, error));
      });
      this.server.listen(port, host, resolve);
    });
  }

  async stop(): Promise<void> {
    if (!this.server.listening) return;
    await new Promise<void>((resolve) => {
      this.server.close(() => {
        resolve();
      });
      this.server.closeAllConnections();
    });
  }

  private async answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    if (request.url === '/livez') return sendJson(response, 200, { alive: true });
    if (request.url === '/readyz') {
      const checks = Object.fromEntries([...this.checks].map(([name, ready]) => [name, ready()]));
      const ready = Object.values(checks).every((result) => result === true);
      return sendJson(response, ready ? 200 : 503, { ready, checks });
    }
    if (request.url !== '/metrics') return sendJson(response, 404, { error: 'Ask for /livez, /readyz or /metrics.' });
    const { registry } = this.options.metrics;
    response.setHeader('content-type', registry.contentType);
    response.end(await registry.metrics());
  }
}

function sendJson(response: ServerResponse, status: number, body: object): void {
  response.writeHead(status, { 'content-type': 'application/json' });
  response.end(JSON.stringify(body));
}
