import {
  GatewayControlServiceDefinition,
  LoaderServiceDefinition,
  PublisherControlServiceDefinition,
} from '@backtalk/proto/control';
import { TrainingWorkerServiceDefinition } from '@backtalk/proto/training';
import { Client, credentials, Metadata, status, type ServiceError } from '@grpc/grpc-js';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { baseSettings } from '../config/base-settings.js';
import { defineErrors } from '../errors/backtalk-error.js';
import { callerEntry, tokenEntry } from '../grpc/client.js';
import { serveGrpc, type GrpcServer } from '../grpc/server.js';
import { silentLogger } from '../testing/silent-logger.js';
import { callPairs, calls, type CallPair, pairsFor, pairsOf, tokenVariable } from './calls.js';
import { brokerServices } from './users.js';

const parts = [...brokerServices, 'training', 'engine', 'unknown'];
const tokenOf = (pair: CallPair) => `the-secret-of-${pair}`;
/** What the set-up gives a part. */
const tokensOf = (part: string) => Object.fromEntries(pairsOf(part).map((pair) => [pair, tokenOf(pair)]));

const { reached } = defineErrors('test', {
  reached: { code: 'not_found', status: 404, retry: 'never', message: () => 'The call came through.' },
});

interface AnyDefinition {
  readonly fullName: string;
  readonly methods: Readonly<Record<string, { readonly name: string; readonly responseStream: boolean }>>;
}

const definitions: readonly AnyDefinition[] = [
  GatewayControlServiceDefinition,
  LoaderServiceDefinition,
  PublisherControlServiceDefinition,
  TrainingWorkerServiceDefinition,
];

/** Every method of every part, and where it is served. */
interface Served {
  readonly callee: string;
  readonly path: string;
  readonly client: Client;
}

const served: Served[] = [];
const servers: GrpcServer[] = [];

beforeAll(async () => {
  for (const definition of definitions) {
    const { callee } = calls[callPairs.find((pair) => calls[pair].service === definition.fullName) ?? 'cliToPublisher'];
    const failing = Object.entries(definition.methods).map(([key, { responseStream }]) => [
      key,
      responseStream
        ? () => ({ [Symbol.asyncIterator]: () => ({ next: () => Promise.reject(reached({})) }) })
        : () => Promise.reject(reached({})),
    ]);
    const server = await serveGrpc({
      address: { host: '127.0.0.1', port: 0 },
      services: [{ definition, implementation: Object.fromEntries(failing) as object }] as never,
      logger: silentLogger,
      wire: { tokens: tokensOf(callee) },
    });
    servers.push(server);
    const client = new Client(`127.0.0.1:${server.port}`, credentials.createInsecure());
    for (const { name } of Object.values(definition.methods))
      served.push({ callee, client, path: `/${definition.fullName}/${name}` });
  }
});

afterAll(async () => {
  for (const { client } of served) client.close();
  await Promise.all(servers.map((server) => server.stop(0)));
});

/** On the wire all kinds of calls are one: an empty message, then the end. */
function outcome({ client, path }: Served, caller: string, token?: string): Promise<string> {
  const metadata = new Metadata();
  metadata.set(callerEntry, caller);
  if (token !== undefined) metadata.set(tokenEntry, `Bearer ${token}`);
  const bytes = (value: Buffer) => value;
  const call = client.makeBidiStreamRequest(path, bytes, bytes, metadata, { deadline: Date.now() + 20_000 });
  call.on('data', () => undefined);
  call.end(Buffer.alloc(0));
  return new Promise((resolve) => {
    call.on('error', ({ code, details }: ServiceError) => resolve(`${status[code]} ${details}`));
    call.on('end', () => resolve('ended'));
  });
}

const callThrough = 'NOT_FOUND The call came through.';

describe('the table of calls', () => {
  it('names every method of every gRPC service, and none that is gone', () => {
    const there = definitions.flatMap(({ fullName, methods }) =>
      Object.values(methods).map(({ name }) => `/${fullName}/${name}`),
    );
    const named = callPairs.flatMap((pair) => calls[pair].methods.map((name) => `/${calls[pair].service}/${name}`));
    expect(named.sort()).toEqual(there.sort());
    expect(pairsFor('/backtalk.v1.LoaderService/toString')).toEqual([]);
  });

  it('a pair has a setting of its own, and a part those that it calls or answers with', () => {
    for (const pair of callPairs)
      expect(baseSettings[pair]).toMatchObject({ variable: tokenVariable(pair), secret: true });
    expect(new Set(callPairs.map(tokenVariable)).size).toBe(callPairs.length);
    const held = Object.fromEntries(parts.map((part) => [part, pairsOf(part).length]));
    expect(held).toMatchObject({ gateway: 1, loader: 1, publisher: 3, trainer: 1, training: 1, cli: 1 });
    expect(held).toMatchObject({ collector: 0, judge: 0, engine: 0, unknown: 0 });
  });
});

describe('a part that calls another with all secrets that it was given', () => {
  it.each(parts)('%s reaches the methods that the table names it for, and no others', async (caller) => {
    const own = [undefined, ...Object.values(tokensOf(caller))];
    const allowed = served.filter(({ path }) => pairsFor(path).some((pair) => calls[pair].caller === caller));
    for (const target of served.filter(({ callee }) => callee !== caller)) {
      const outcomes = await Promise.all(own.map((token) => outcome(target, caller, token)));
      if (allowed.includes(target)) expect(outcomes).toContain(callThrough);
      else {
        const [callers] = pairsFor(target.path).map((pair) => calls[pair].caller);
        const refusal = `PERMISSION_DENIED '${caller}' may not call ${target.path}, which is for ${callers}.`;
        expect(new Set(outcomes)).toEqual(new Set([refusal]));
      }
    }
  });

  it.each(parts)(
    '%s is refused under the name of every other part, whichever of its secrets it shows',
    async (part) => {
      const own = [undefined, '', ...Object.values(tokensOf(part))];
      const through: string[] = [];
      let tries = 0;
      for (const target of served.filter(({ callee }) => callee !== part)) {
        for (const name of parts.filter((other) => other !== part)) {
          for (const token of own) {
            tries += 1;
            const answer = await outcome(target, name, token);
            if (!/^(PERMISSION_DENIED|UNAUTHENTICATED) /.test(answer))
              through.push(`${target.path} as ${name}: ${answer}`);
          }
        }
      }
      expect(tries).toBeGreaterThan(100);
      expect(through).toEqual([]);
    },
  );
});
