// An engine without a model, for tests: vLLM's dialect over HTTP, deterministic answers, and faults on demand.
//
// In: settings that may be changed while it runs. Out: a URL, and counts of what happened. Never used in production.
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { FakeAdapters, refusal, type FakeAnswer } from './fake-adapters.js';
import { FakePlaces } from './fake-places.js';
import { defaultSettings, noCounts, type FakeCounts, type FakeSettings } from './fake-settings.js';
import type { FakeState } from './fake-state.js';
import { routeFake } from './fake-routes.js';

export interface FakeEngineOptions extends Partial<FakeSettings> {
  readonly port?: number;
  readonly baseModel?: string;
  /** When set, requests must bring it as a bearer token. */
  readonly apiKey?: string;
}

export interface FakeEngine {
  readonly url: string;
  readonly port: number;
  readonly baseModel: string;
  /** May be changed at any moment. */
  readonly settings: FakeSettings;
  readonly counts: FakeCounts;
  readonly adapters: FakeAdapters;
  /** Cuts every connection and comes back on the same port, without adapters. */
  restart(): Promise<void>;
  /** Cuts every connection and listens no more. */
  stop(): Promise<void>;
}

export async function startFakeEngine(options: FakeEngineOptions = {}): Promise<FakeEngine> {
  const { port = 0, baseModel = 'smollm2-135m-wishes', apiKey, ...settings } = options;
  const state: FakeState = {
    baseModel,
    apiKey,
    settings: { ...defaultSettings, ...settings },
    counts: noCounts(),
    adapters: new FakeAdapters(baseModel),
    places: new FakePlaces(),
  };
  let server = await listen(state, port);
  const bound = portOf(server);
  return {
    url: `http://127.0.0.1:${bound}`,
    port: bound,
    baseModel,
    settings: state.settings,
    counts: state.counts,
    adapters: state.adapters,
    restart: async () => {
      await close(server);
      state.adapters.forget();
      server = await listen(state, bound);
    },
    stop: () => close(server),
  };
}

async function listen(state: FakeState, port: number): Promise<Server> {
  const server = createServer((request, response) => {
    answer(state, request, response).catch(() => response.destroy());
  });
  server.keepAliveTimeout = 5_000;
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen(port, '127.0.0.1', resolve);
  });
  return server;
}

async function answer(state: FakeState, request: IncomingMessage, response: ServerResponse): Promise<void> {
  const { apiKey } = state;
  // vLLM's health is open to everybody.
  const isOpen = apiKey === undefined || request.url === '/health';
  const refused = !isOpen && request.headers.authorization !== `Bearer ${apiKey}`;
  const whole = refused
    ? refusal(401, 'Unauthorized', 'AuthenticationError')
    : await routeFake(state, request, response);
  if (whole !== undefined) writeWhole(response, whole);
}

function writeWhole(response: ServerResponse, { status, body }: FakeAnswer): void {
  if (response.destroyed || response.headersSent) return;
  const text = body === undefined ? '' : JSON.stringify(body);
  response.writeHead(status, { 'content-type': 'application/json', 'content-length': Buffer.byteLength(text) });
  response.end(text);
}

function close(server: Server): Promise<void> {
  return new Promise((resolve) => {
    server.close(() => resolve());
    server.closeAllConnections();
  });
}

function portOf(server: Server): number {
  const address = server.address();
  return typeof address === 'object' && address !== null ? address.port : 0;
}
