import { once } from 'node:events';
import { connect as connectSocket } from 'node:net';
import {
  TrainingWorkerServiceDefinition,
  type TrainResponse,
  type TrainingWorkerServiceImplementation,
} from '@backtalk/proto/training';
import { afterEach, describe, expect, it } from 'vitest';
import { openWire, wireSecurity, type WireSecurity } from '../config/wire-security.js';
import {
  asBacktalkError,
  type BacktalkError,
  defineErrors,
  isBacktalkError,
  kitErrors,
} from '../errors/backtalk-error.js';
import { newTrace } from '../telemetry/trace.js';
import { FakeClock } from '../testing/fake-clock.js';
import { makeCertificates } from '../testing/certificates.js';
import { silentLogger } from '../testing/silent-logger.js';
import { TemporaryDirectory } from '../testing/temporary-directory.js';
import { grpcClient } from './client.js';
import { type GrpcCallFacts, serveGrpc } from './server.js';

type Implementation = TrainingWorkerServiceImplementation<GrpcCallFacts>;

const errors = defineErrors('worker', {
  lost: { code: 'fact_superseded', status: 409, retry: 'never', message: (p: { by: string }) => `${p.by} was first.` },
  broken: { code: 'disk_full', retry: 'stop', message: () => 'The disk is full.' },
});

const unused = (): Promise<never> => Promise.reject(kitErrors.internal());

function worker(parts: Partial<Implementation>): Implementation {
  const train = (): AsyncIterable<TrainResponse> => ({ [Symbol.asyncIterator]: () => ({ next: unused }) });
  const getBlob = () => ({ [Symbol.asyncIterator]: () => ({ next: unused }) });
  return { status: unused, missing: unused, putBlob: unused, score: unused, getBlob, train, ...parts };
}

const folders = new TemporaryDirectory('certificates');
const closing: (() => Promise<void> | void)[] = [];

async function connect(parts: Partial<Implementation>, clock?: FakeClock, wire?: WireSecurity) {
  const server = await serveGrpc({
    address: { host: '127.0.0.1', port: 0 },
    services: [{ definition: TrainingWorkerServiceDefinition, implementation: worker(parts) }],
    logger: silentLogger,
    ...(clock === undefined ? {} : { clock }),
    ...(wire === undefined ? {} : { wire }),
  });
  const client = grpcClient(TrainingWorkerServiceDefinition, `127.0.0.1:${server.port}`, { caller: 'trainer' });
  closing.push(() => server.stop(100), client.close);
  return { server, client };
}

async function failureOf(call: Promise<unknown>): Promise<BacktalkError> {
  const error: unknown = await call.then(
    () => undefined,
    (thrown: unknown) => thrown,
  );
  if (isBacktalkError(error)) return error;
  throw kitErrors.internal({ what: 'the call did not fail with a BacktalkError' }, error);
}

afterEach(async () => {
  for (const close of closing.splice(0).reverse()) await close();
});

describe('a gRPC call', () => {
  it('a call says who called and stays in the caller’s trace', async () => {
    const trace = newTrace();
    const { client } = await connect({
      missing: (_request, context) => Promise.resolve({ digests: [context.caller, context.trace.traceId] }),
    });
    const answer = await client.missing({ digests: [] }, { deadlineMs: 30_000, trace });
    expect(answer.digests).toEqual(['trainer', trace.traceId]);
  });

  it('fails with the same code, retry, status and words that the server threw', async () => {
    const { client } = await connect({ missing: () => Promise.reject(errors.lost({ by: 'another' })) });
    const error = await failureOf(client.missing({ digests: [] }, { deadlineMs: 30_000 }));
    expect(error).toMatchObject({
      code: 'fact_superseded',
      retry: 'never',
      status: 409,
      message: 'another was first.',
    });
  });

  it('fails a stream in the same way, after what it had given', async () => {
    async function* train(): AsyncGenerator<TrainResponse> {
      yield await Promise.resolve({ event: undefined });
      throw errors.lost({ by: 'another' });
    }
    const { client } = await connect({ train });
    const seen: unknown[] = [];
    const read = async (): Promise<void> => {
      for await (const response of client.train({}, { deadlineMs: 30_000 })) seen.push(response);
    };
    expect((await failureOf(read())).code).toBe('fact_superseded');
    expect(seen).toHaveLength(1);
  });

  it('a call does not stop the caller when the peer must stop', async () => {
    const { client } = await connect({ missing: () => Promise.reject(errors.broken()) });
    const error = await failureOf(client.missing({ digests: [] }, { deadlineMs: 30_000 }));
    expect(error).toMatchObject({ code: 'disk_full', retry: 'later' });
  });

  it('tells callers nothing of an unexpected error', async () => {
    const { client } = await connect({ missing: () => Promise.reject(new TypeError('the password is swordfish')) });
    const error = await failureOf(client.missing({ digests: [] }, { deadlineMs: 30_000 }));
    expect(error.code).toBe('internal');
    expect(error.message).not.toContain('swordfish');
  });

  it('a call ends at its deadline and cancels the work on the server', async () => {
    let cancelled: (() => void) | undefined;
    const seen = new Promise<void>((resolve) => {
      cancelled = resolve;
    });
    const missing: Implementation['missing'] = ({ digests }, { signal }) =>
      new Promise((resolve, reject) => {
        if (digests.length === 0) return resolve({ digests });
        signal.addEventListener('abort', () => {
          cancelled?.();
          reject(kitErrors.cancelled());
        });
      });
    const { client } = await connect({ missing });
    // What is cancelled must have been sent: the connection is there when the time begins.
    await client.missing({ digests: [] }, { deadlineMs: 30_000 });
    const error = await failureOf(client.missing({ digests: ['one'] }, { deadlineMs: 3_000 }));
    expect(error).toMatchObject({ code: 'deadline_exceeded', retry: 'later' });
    await seen;
  });

  it('a call is refused before it is sent when it names no deadline', async () => {
    const { client } = await connect({});
    const careless = client.missing as (request: object, options: object) => Promise<unknown>;
    expect((await failureOf(careless({ digests: [] }, {}))).code).toBe('deadline_missing');
  });

  it('a call ends as cancelled when its signal aborts', async () => {
    const { client } = await connect({});
    const signal = AbortSignal.abort();
    expect((await failureOf(client.missing({ digests: [] }, { deadlineMs: 30_000, signal }))).code).toBe('cancelled');
  });

  it('says that nobody answers when nobody does', async () => {
    const { server, client } = await connect({});
    await server.stop();
    const error = await failureOf(client.missing({ digests: [] }, { deadlineMs: 30_000 }));
    expect(error).toMatchObject({ code: 'peer_unreachable', retry: 'later' });
  });
});

describe('serveGrpc', () => {
  it('lets running calls finish, and cuts what is left after the drain time', async () => {
    const clock = new FakeClock();
    let entered: (() => void) | undefined;
    const inside = new Promise<void>((resolve) => {
      entered = resolve;
    });
    const { server, client } = await connect(
      {
        missing: () => {
          entered?.();
          return new Promise(() => undefined);
        },
      },
      clock,
    );
    const call = failureOf(client.missing({ digests: [] }, { deadlineMs: 60_000 }));
    await inside;
    const stopped = server.stop(1000);
    await clock.advance(1000);
    await stopped;
    expect(['cancelled', 'peer_unreachable']).toContain((await call).code);
    closing.splice(0);
    client.close();
  });

  it('stops after the drain time beside a connection that never says a word', async () => {
    const { server } = await connect({});
    const silent = connectSocket(server.port, '127.0.0.1');
    await once(silent, 'connect');
    await server.stop(100);
    const refused = connectSocket(server.port, '127.0.0.1');
    expect(await once(refused, 'error')).toMatchObject([{ code: 'ECONNREFUSED' }]);
    silent.destroy();
  });

  it('names the address when the port is taken', async () => {
    const { server } = await connect({});
    const again = serveGrpc({ address: server.address, services: [], logger: silentLogger });
    expect(await failureOf(again)).toMatchObject({ code: 'address_unavailable' });
  });
});

describe('services that know each other', () => {
  const asked = { digests: [] };
  const answers = { missing: () => Promise.resolve({ digests: ['known'] }) };

  async function outcome(server: WireSecurity, client: WireSecurity): Promise<string> {
    const { port } = (await connect(answers, undefined, server)).server;
    const caller = grpcClient(TrainingWorkerServiceDefinition, `127.0.0.1:${port}`, {
      caller: 'trainer',
      wire: client,
    });
    closing.push(caller.close);
    return caller.missing(asked, { deadlineMs: 20_000 }).then(
      ({ digests }) => digests.join(),
      (error: unknown) => asBacktalkError(error).code,
    );
  }

  it('a call is answered with the token of its pair, and refused with another or none', async () => {
    const server = { tokens: { trainerToTraining: 'the-token' } };
    expect(await outcome(server, server)).toBe('known');
    expect(await outcome(server, { tokens: { trainerToTraining: 'the-tokem' } })).toBe('caller_unknown');
    expect(await outcome(server, { tokens: { publisherToLoader: 'the-token' } })).toBe('caller_unknown');
    expect(await outcome(server, openWire)).toBe('caller_unknown');
    expect(await outcome(openWire, server)).toBe('known');
  });

  it('a call is answered over TLS to those that one authority has signed for, and to no others', async () => {
    const [own, foreign] = [1, 2].map(() => wireSecurity(makeCertificates(folders)));
    if (own?.tls === undefined || foreign?.tls === undefined) throw kitErrors.internal();
    const [known, other] = [own.tls, foreign.tls];
    expect(await outcome(own, own)).toBe('known');
    // The server knows the caller's certificate, and the caller does not know the server's; and the other way round.
    const distrusts = { ca: other.ca, cert: known.cert, key: known.key };
    expect(await outcome(own, { tls: distrusts, tokens: {} })).toBe('peer_unreachable');
    const unknown = { ca: known.ca, cert: other.cert, key: other.key };
    expect(await outcome(own, { tls: unknown, tokens: {} })).toBe('peer_unreachable');
    expect(await outcome(own, { tokens: {} })).toBe('peer_unreachable');
  });

  it('a server in clear refuses a caller over TLS', async () => {
    const own = wireSecurity(makeCertificates(folders));
    expect(await outcome({ tokens: {} }, own)).toBe('peer_unreachable');
  });
});
