import { createHash } from 'node:crypto';
import { request as httpRequest } from 'node:http';
import { connect } from 'node:net';
import { writeFile } from 'node:fs/promises';
import OpenAI from 'openai';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { freePort, until } from '@backtalk/kit/testing';
import {
  loadVersion,
  putRoutes,
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

const hello = [{ role: 'user' as const, content: 'Hello there' }];
const json = { 'content-type': 'application/json' };

beforeAll(async () => {
  around = await startSurroundings();
  leased = await startLeasedEngine(around, 'engine-1');
  started = await startGateway(around);
  await ready(started);
});

afterAll(async () => {
  await started.gateway.stop();
  await leased.stop();
  await around.stop();
});

beforeEach(() => {
  leased.engine.settings.faults = {};
});

function client(options: object = {}): OpenAI {
  return new OpenAI({ baseURL: started.url, apiKey: 'none needed', maxRetries: 0, ...options });
}

async function post(body: string | Uint8Array, headers: Record<string, string> = json, path = '/chat/completions') {
  const response = await fetch(`${started.url}${path}`, { method: 'POST', headers, body: Buffer.from(body) });
  return { status: response.status, headers: response.headers, body: await response.json() };
}

const valid = JSON.stringify({ model: 'backtalk', messages: hello, max_tokens: 2 });

describe('bad input is refused in OpenAI’s shape', () => {
  it.each([
    ['broken JSON', '{"model": ', 400, 'invalid_json'],
    ['an empty body', '', 400, 'invalid_json'],
    ['JSON that is no object', '[1]', 400, 'invalid_json'],
    ['JSON 100,000 deep', '['.repeat(100_000) + ']'.repeat(100_000), 400, 'invalid_json'],
    [
      'deep JSON in a field',
      `{"model":"backtalk","a":${'['.repeat(100_000)}${']'.repeat(100_000)}}`,
      400,
      'invalid_json',
    ],
    ['invalid UTF-8', Buffer.from([0x7b, 0x22, 0xff, 0xfe, 0x22, 0x7d]), 400, 'invalid_json'],
    ['an unknown model', valid.replace('backtalk', 'gpt-4'), 404, 'model_not_found'],
    ['a version that nobody holds', valid.replace('backtalk', 'backtalk-v77'), 404, 'model_not_found'],
    ['a missing field', '{"model":"backtalk"}', 400, 'missing_required_parameter'],
  ])('refuses in OpenAI’s shape: %s', async (_what, body, status, code) => {
    const answer = await post(body);
    expect(answer.status).toBe(status);
    expect(answer.body).toMatchObject({
      error: { code, type: 'invalid_request_error', message: expect.any(String) as unknown },
    });
  });

  it('refuses a wrong content type and compressed bodies', async () => {
    expect(await post(valid, { 'content-type': 'text/plain' })).toMatchObject({ status: 415 });
    expect(await post(valid, { ...json, 'content-encoding': 'gzip' })).toMatchObject({ status: 415 });
    expect(await post(valid, { 'content-type': 'application/json; charset=utf-8' })).toMatchObject({ status: 200 });
  });

  it('refuses a body over the limit, declared or not, before it is all read', async () => {
    const small = await startGateway(around, { BACKTALK_BODY_BYTES_MAX: '2000' });
    const big = `{"model":"backtalk","a":"${'x'.repeat(3_000_000)}"}`;
    const declared = await fetch(`${small.url}/chat/completions`, { method: 'POST', headers: json, body: big });
    expect(declared.status).toBe(413);
    expect(await declared.json()).toMatchObject({ error: { code: 'request_too_large' } });
    const status = await new Promise((resolve, reject) => {
      const request = httpRequest(`${small.url}/chat/completions`, { method: 'POST', headers: json }, (response) => {
        resolve(response.statusCode);
        response.resume();
      });
      request.on('error', reject);
      request.write(big.slice(0, 100_000));
    });
    expect(status).toBe(413);
    await small.gateway.stop();
  });

  it('refuses unknown routes and wrong methods', async () => {
    expect(await post('{}', json, '/nothing')).toMatchObject({ status: 404, body: { error: { code: 'unknown_url' } } });
    const response = await fetch(`${started.url}/chat/completions`);
    expect(response.status).toBe(405);
    expect(response.headers.get('allow')).toBe('POST');
  });

  it('refuses a prompt that is longer than the context', async () => {
    const words = 'word '.repeat(20_000);
    const asking = client().chat.completions.create({
      model: 'backtalk',
      messages: [{ role: 'user', content: words }],
    });
    await expect(asking).rejects.toMatchObject({ status: 400, code: 'context_length_exceeded' });
    await expect(asking).rejects.toThrow('maximum context length is 8192 tokens');
  });

  it('refuses headers and bodies that dribble', async () => {
    const hasty = await startGateway(around, { BACKTALK_HEADERS_WAIT: '300ms', BACKTALK_BODY_WAIT: '600ms' });
    const answer = (text: string): Promise<string> =>
      new Promise((resolve, reject) => {
        const socket = connect(hasty.gateway.ports.http, '127.0.0.1', () => socket.write(text));
        let received = '';
        socket.on('data', (chunk) => (received += chunk.toString()));
        socket.on('close', () => resolve(received));
        socket.on('error', reject);
      });
    const [headers, body] = await Promise.all([
      answer('POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\n'),
      answer(
        'POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 50\r\n\r\n{"mo',
      ),
    ]);
    for (const text of [headers, body]) {
      expect(text).toMatch(/^HTTP\/1.1 408 /);
      expect(text).toContain('"code":"request_timeout"');
    }
    await hasty.gateway.stop();
  });
});

describe('keys', () => {
  const sha256 = (key: string): string => createHash('sha256').update(key).digest('hex');

  it('keys are asked for as soon as one is configured, and are never sent to an engine', async () => {
    const path = around.directory.join('keys.json');
    const policies = ['backtalk'];
    const keys = [
      { sha256: sha256('sk-ann'), tenant: 'acme', user: 'ann', policies },
      {
        sha256: sha256('sk-bob'),
        tenant: 'other',
        user: 'bob',
        policies,
        train: false,
        limits: { requestsPerMinute: 3 },
      },
    ];
    await writeFile(path, JSON.stringify({ keys }));
    const guarded = await startGateway(around, { BACKTALK_KEYS_FILE: path });
    const as = (apiKey: string) => client({ baseURL: guarded.url, apiKey });
    const ask = (apiKey: string) => as(apiKey).chat.completions.create({ model: 'backtalk', messages: hello });
    const before = leased.engine.counts.requests;
    await expect(ask('sk-wrong')).rejects.toThrow(OpenAI.AuthenticationError);
    await expect(as('sk-wrong').models.list()).rejects.toThrow(OpenAI.AuthenticationError);
    expect(leased.engine.counts.requests).toBe(before);
    const answer = await ask('sk-ann');
    expect((await ask('sk-bob')).model).toBe('backtalk');
    expect((await around.reader.last('turnCompleted', { turn: answer.id }))?.message.trainable).toBe(true);
    const give = (apiKey: string) => as(apiKey).post('/feedback', { body: { turn_id: answer.id, score: 1 } });
    await expect(give('sk-bob')).rejects.toThrow(OpenAI.NotFoundError);
    expect(await give('sk-ann')).toMatchObject({ stored: true });
    await ask('sk-bob');
    // He may ask three times more when a minute has just begun.
    const refusal = await until(() =>
      ask('sk-bob').then(
        () => undefined,
        (error: unknown) => error,
      ),
    );
    expect(refusal).toBeInstanceOf(OpenAI.RateLimitError);
    await guarded.gateway.stop();
  });
});

describe('feedback and sessions', () => {
  it('feedback is stored once, and refused for an unknown turn', async () => {
    const answer = await client().chat.completions.create({ model: 'backtalk', messages: hello });
    const give = (body: object) => client().post('/feedback', { body });
    expect(await give({ turn_id: answer.id, score: -1, comment: 'Too long.' })).toMatchObject({
      stored: true,
      repeated: false,
    });
    expect(await give({ id: answer.id, score: -1, comment: 'Too long.' })).toMatchObject({
      stored: true,
      repeated: true,
    });
    const fact = await around.reader.last('feedbackGiven', { turn: answer.id });
    expect(fact?.message).toMatchObject({ score: -1, hasScore: true, comment: 'Too long.', policy: 'backtalk' });
    await expect(give({ turn_id: 'turn_0', score: 1 })).rejects.toThrow(OpenAI.NotFoundError);
    await expect(give({ turn_id: answer.id, score: 7 })).rejects.toThrow(OpenAI.BadRequestError);
  });

  it('a session closes under its id or the client’s own name, also when Valkey has forgotten it', async () => {
    const close = (id: string) => client().delete(`/sessions/${id}`);
    const chat = (headers: Record<string, string> = {}) =>
      client().chat.completions.create({ model: 'backtalk', messages: hello }, { headers });
    const first = await chat();
    const session = first.id.replace('turn_', 'session_');
    expect(await close(session)).toMatchObject({ closed: true, session });
    await chat({ 'X-Session-Id': 'named' });
    expect(await close('named')).toMatchObject({ closed: true });
    const [forgotten] = await Promise.all([chat(), chat({ 'X-Session-Id': 'forgotten' })]);
    await around.valkey.flush();
    expect(await close(forgotten.id.replace('turn_', 'session_'))).toMatchObject({ closed: true });
    expect(await close('forgotten')).toMatchObject({ closed: true });
    await expect(close('session_nobody')).rejects.toThrow(OpenAI.NotFoundError);
  });
});

describe('engines that fail', () => {
  it('an engine that fails is replaced before the first byte, without the client noticing', async () => {
    const nobody = `http://127.0.0.1:${await freePort()}`;
    const dead = await startLeasedEngine(around, 'engine-0', { url: nobody });
    await until(async () => (await started.metric('engines_ready')) === 2);
    const asking = Array.from({ length: 40 }, () =>
      client().chat.completions.create({ model: 'backtalk', messages: hello }),
    );
    expect(await Promise.all(asking)).toHaveLength(40);
    expect(await started.metric('engine_retries_total')).toBeGreaterThan(0);
    await dead.stop();
    await until(async () => (await started.metric('engines_ready')) === 1);
  });

  it('engines are asked once more, after the routes were read again, when one does not know the version', async () => {
    const forgetful = await startLeasedEngine(around, 'engine-3', {
      versions: ['backtalk-v0', 'backtalk-v5', 'backtalk-v6'],
    });
    await loadVersion(around, forgetful, 'backtalk-v6');
    await until(async () => (await started.metric('engines_ready')) === 2);
    await putRoutes(around, 'backtalk-v5', 20);
    await until(async () => (await started.metric('routes_fence')) === 20);
    await expect(client().chat.completions.create({ model: 'backtalk', messages: hello })).rejects.toMatchObject({
      status: 503,
    });
    expect(forgetful.engine.counts.byModel['backtalk-v5']).toBe(2);
    await putRoutes(around, 'backtalk-v6', 21);
    await until(async () => (await started.metric('routes_fence')) === 21);
    const { response } = await client().chat.completions.create({ model: 'backtalk', messages: hello }).withResponse();
    expect(response.headers.get('x-backtalk-weights')).toBe('backtalk-v6');
    await putRoutes(around, 'backtalk-v0', 22);
    await until(async () => (await started.metric('routes_fence')) === 22);
    await forgetful.stop();
  });

  it('answers 503 with Retry-After when no engine holds the version', async () => {
    await putRoutes(around, 'backtalk-v9', 30);
    await until(async () => (await started.metric('routes_fence')) === 30);
    const answer = await post(valid);
    expect(answer).toMatchObject({ status: 503, body: { error: { code: 'no_engine', type: 'server_error' } } });
    expect(answer.headers.get('retry-after')).toBe('2');
    expect((await fetch(`http://127.0.0.1:${started.gateway.ports.health}/readyz`)).status).toBe(503);
    await putRoutes(around, 'backtalk-v0', 31);
    await ready(started);
  });

  it('OpenAI’s own client tries again when all engines are busy', async () => {
    const before = leased.engine.counts.requests;
    leased.engine.settings.faults = { busy: true };
    const asking = client({ maxRetries: 3 }).chat.completions.create({ model: 'backtalk', messages: hello });
    await until(() => leased.engine.counts.requests > before);
    leased.engine.settings.faults = {};
    expect((await asking).model).toBe('backtalk');
  });
});
