import { GatewayControlServiceDefinition } from '@backtalk/proto/control';
import { Routes } from '@backtalk/proto/weights';
import { grpcClient } from '@backtalk/kit/grpc';
import { until } from '@backtalk/kit/testing';
import { connect } from 'node:net';
import OpenAI from 'openai';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import {
  loadVersion,
  ready,
  startGateway,
  startLeasedEngine,
  startSurroundings,
  type LeasedEngine,
  type StartedGateway,
  type Surroundings,
} from '../testing/started-gateway.js';

let around: Surroundings;
let leased: LeasedEngine;
let started: StartedGateway;

beforeAll(async () => {
  around = await startSurroundings();
  leased = await startLeasedEngine(around, 'engine-1', { versions: ['backtalk-v0', 'backtalk-v1'] });
  await loadVersion(around, leased, 'backtalk-v1');
  // A stop ends with the answers in hand, long before answers would be cut.
  started = await startGateway(around, {
    BACKTALK_READER_WAIT: '200ms',
    BACKTALK_STOP_WAIT: '10m',
    BACKTALK_PUBLISHER_TO_GATEWAY_TOKEN: token,
  });
  await ready(started);
  // The log of weights, as far as the fences of these tests.
  const admin = await around.nats.connect('admin');
  for (let fence = 1; fence <= 8; fence += 1) await admin.js.publish('backtalk.weights.staged.another', '');
});

afterAll(async () => {
  await leased.stop();
  await around.stop();
});

const messages = [{ role: 'user' as const, content: 'Hello' }];
const client = () => new OpenAI({ baseURL: started.url, apiKey: 'none', maxRetries: 0 });
const token = 'the secret of publisher and gateway';
const control = (publisherToGateway = token, caller: 'publisher' | 'trainer' = 'publisher') =>
  grpcClient(GatewayControlServiceDefinition, `127.0.0.1:${started.gateway.ports.grpc}`, {
    caller,
    wire: { tokens: { publisherToGateway } },
  });
const routes = (version: string, fence: number) =>
  Routes.fromPartial({ policy: 'backtalk', routes: [{ version, share: 1 }], fence, stable: version });

async function weights(): Promise<string | null> {
  const { response } = await client().chat.completions.create({ model: 'backtalk', messages }).withResponse();
  return response.headers.get('x-backtalk-weights');
}

describe('Commit', () => {
  it('a commit by another service, or without the secret of publisher and gateway, is refused', async () => {
    const callers = [control('another secret'), control(''), control(token, 'trainer')];
    const commit = { routes: routes('backtalk-v0', 3) };
    const refused = await Promise.allSettled(callers.map((caller) => caller.commit(commit, { deadlineMs: 30_000 })));
    expect(refused).toMatchObject([
      { reason: { code: 'caller_unknown', status: 401 } },
      { reason: { code: 'caller_unknown', status: 401 } },
      { reason: { code: 'caller_forbidden', status: 403 } },
    ]);
    for (const caller of callers) caller.close();
  });

  it('a fence that no publisher can have reached is refused, and shuts out no later one', async () => {
    const calls = control();
    const far = calls.commit({ routes: routes('backtalk-v1', 2 ** 40) }, { deadlineMs: 30_000 });
    await expect(far).rejects.toMatchObject({ code: 'fence_unknown' });
    expect(await calls.commit({ routes: routes('backtalk-v0', 5) }, { deadlineMs: 30_000 })).toEqual({ fence: 5 });
    calls.close();
  });

  it('a commit has answered when new requests are routed so, and streams in flight finish where they began', async () => {
    const calls = control();
    Object.assign(leased.engine.settings, { tokenMs: 30, answerTokens: 500 });
    const stream = await client().chat.completions.create({ model: 'backtalk', messages, stream: true });
    const abort = new AbortController();
    const seen: Record<string, number>[] = [];
    const watching = (async () => {
      const watch = calls.streams({}, { deadlineMs: 120_000, signal: abort.signal });
      for await (const { inFlight } of watch) seen.push(inFlight);
    })().catch(() => undefined);
    await until(() => seen.some((inFlight) => inFlight['backtalk-v0'] === 1));
    expect(await calls.commit({ routes: routes('backtalk-v1', 7) }, { deadlineMs: 30_000 })).toEqual({ fence: 7 });
    leased.engine.settings.answerTokens = 12;
    expect(await weights()).toBe('backtalk-v1');
    expect(leased.engine.counts.running).toBe(1);
    leased.engine.settings.tokenMs = 0;
    let turn = '';
    for await (const chunk of stream) turn = chunk.id;
    const fact = await around.reader.last('turnCompleted', { turn });
    expect(fact?.message).toMatchObject({
      weightsVersion: 'backtalk-v0',
      weightsVersionAtEnd: 'backtalk-v0',
      trainable: true,
    });
    await until(() => seen.at(-1)?.['backtalk-v0'] === undefined, { what: 'the old version’s end' });
    abort.abort();
    await watching;
    calls.close();
  });

  it('refuses an earlier fence, and says which one is in force', async () => {
    const calls = control();
    expect(await calls.commit({ routes: routes('backtalk-v0', 6) }, { deadlineMs: 30_000 })).toEqual({ fence: 7 });
    expect(await weights()).toBe('backtalk-v1');
    expect(await calls.commit({ routes: routes('backtalk-v0', 8) }, { deadlineMs: 30_000 })).toEqual({ fence: 8 });
    expect(await weights()).toBe('backtalk-v0');
    calls.close();
  });
});

describe('a client that reads nothing', () => {
  it('a client that reads nothing is cut, and the engine’s work with it, while its buffer stays bounded', async () => {
    Object.assign(leased.engine.settings, { answerTokens: 2_000_000, maxContext: 4_000_000 });
    const body = JSON.stringify({ model: 'backtalk', messages, stream: true, logprobs: true });
    const head = `POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n`;
    const before = leased.engine.counts.cancelled;
    const socket = connect(started.gateway.ports.http, '127.0.0.1', () => socket.write(head + body));
    socket.pause();
    socket.on('error', () => undefined);
    await until(async () => (await started.metric('slow_readers_total')) === 1);
    await until(() => leased.engine.counts.cancelled === before + 1);
    socket.destroy();
    Object.assign(leased.engine.settings, { answerTokens: 12, maxContext: 8_192 });
  });
});

describe('a stop', () => {
  it('a stop lets answers in flight finish, takes no new ones, and gives its lease back', async () => {
    leased.engine.settings.tokenMs = 20;
    const stream = await client().chat.completions.create({ model: 'backtalk', messages, stream: true });
    const stopping = started.gateway.stop();
    await until(
      () =>
        client()
          .models.list()
          .then(
            () => false,
            () => true,
          ),
      { what: 'the closed port' },
    );
    let finish: string | null | undefined;
    for await (const chunk of stream) finish = chunk.choices[0]?.finish_reason ?? finish;
    expect(finish).toBe('stop');
    await stopping;
  });
});
