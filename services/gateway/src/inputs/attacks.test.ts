import { fork, type ChildProcess } from 'node:child_process';
import { createHash, randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { readFile, rm, writeFile } from 'node:fs/promises';
import { createServer, request as httpRequest, type ServerResponse } from 'node:http';
import { connect, type AddressInfo, type Socket } from 'node:net';
import { newTrace } from '@backtalk/kit';
import { freePort, until } from '@backtalk/kit/testing';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import {
  gatewayEnvironment,
  ready,
  startGateway,
  startLeasedEngine,
  startSurroundings,
  type LeasedEngine,
  type StartedGateway,
  type Surroundings,
} from '../testing/started-gateway.js';

interface Answered {
  readonly status: number;
  readonly headers: Headers;
  readonly body: { readonly id?: string; readonly error?: { readonly code: string; readonly message: string } };
}

const mebibyte = 1024 * 1024;
/** Twice the heap that the laptop gives: what lies outside of it counts, too. */
const residentMegabytesMax = 450;
const messages = [{ role: 'user', content: 'Hello there' }];
const valid = { model: 'backtalk', messages, max_tokens: 2 };

let around: Surroundings;
let leased: LeasedEngine;
/** In this process, where a test wants other settings. */
let started: StartedGateway;
/** A process of its own, with the heap that it has on the laptop. */
let child: ChildProcess;
let url: string;

beforeAll(async () => {
  around = await startSurroundings();
  leased = await startLeasedEngine(around, 'engine-1');
  const path = around.directory.join('keys.json');
  const sha256 = (key: string) => createHash('sha256').update(key).digest('hex');
  const policies = ['backtalk'];
  const keys = [
    { sha256: sha256('ann'), tenant: 'acme', user: 'ann', policies },
    { sha256: sha256('eve'), tenant: 'evil', user: 'eve', policies },
    { sha256: sha256('few'), tenant: 'evil', user: 'few', policies, limits: { requestsPerMinute: 3 } },
    { sha256: sha256('sip'), tenant: 'evil', user: 'sip', policies, limits: { requestsPerMinute: 3 } },
    { sha256: sha256('one'), tenant: 'evil', user: 'one', policies, limits: { concurrency: 1 } },
  ];
  await writeFile(path, JSON.stringify({ keys }));
  started = await startGateway(around, {
    BACKTALK_KEYS_FILE: path,
    BACKTALK_READER_WAIT: '300ms',
    BACKTALK_ENGINE_REQUESTS_MAX: '8',
  });
  await ready(started);
  const [http, health] = [await freePort(), await freePort()];
  const environment = gatewayEnvironment(around, {
    BACKTALK_KEYS_FILE: path,
    BACKTALK_LISTEN: `127.0.0.1:${http}`,
    BACKTALK_HEALTH_ADDRESS: `127.0.0.1:${health}`,
    BACKTALK_LOG_LEVEL: 'silent',
  });
  url = `http://127.0.0.1:${http}/v1`;
  const main = new URL('../../dist/main.js', import.meta.url);
  const execArgv = ['--max-old-space-size=256', '--max-semi-space-size=16'];
  child = fork(main, { env: environment, stdio: 'ignore', execArgv });
  await until(async () => (await fetch(`http://127.0.0.1:${health}/readyz`)).status === 200, { timeoutMs: 30_000 });
});

afterAll(async () => {
  child?.kill('SIGKILL');
  await started?.gateway.stop();
  await leased?.stop();
  await around?.stop();
});

async function send(
  key: string,
  path: string,
  body: unknown,
  base = url,
  method = 'POST',
  further: Readonly<Record<string, string>> = {},
): Promise<Answered> {
  const headers = { 'content-type': 'application/json', authorization: `Bearer ${key}`, ...further };
  const sent = Buffer.isBuffer(body) || typeof body === 'string' ? body : JSON.stringify(body);
  const response = await fetch(`${base}${path}`, { method, headers, ...(body === undefined ? {} : { body: sent }) });
  return { status: response.status, headers: response.headers, body: (await response.json()) as Answered['body'] };
}

const chat = (key: string, body: unknown, base?: string) => send(key, '/chat/completions', body, base);

/** Without a declared length, in pieces; resolves to the status. */
function sendChunked(key: string, path: string, piece: Buffer, pieces: number): Promise<number> {
  return new Promise((resolve) => {
    const headers = { 'content-type': 'application/json', authorization: `Bearer ${key}` };
    const request = httpRequest(`${url}${path}`, { method: 'POST', headers }, (response) => {
      resolve(response.statusCode ?? 0);
      response.resume();
    });
    // The gateway closes what it refused.
    request.on('error', () => resolve(0));
    for (let sent = 0; sent < pieces; sent += 1) request.write(piece);
    request.end();
  });
}

/** Connections that send a request's head, and of the seven megabytes that it promises no more than this. */
function sendHeads(base: string, key: string, count: number, sent = '') {
  const head = [
    'POST /v1/chat/completions HTTP/1.1',
    'Host: localhost',
    `Authorization: Bearer ${key}`,
    'Content-Type: application/json',
    `Content-Length: ${7 * mebibyte}`,
  ].join('\r\n');
  const heard = new Map<Socket, string>();
  const sockets = Array.from({ length: count }, () => {
    const socket = connect(Number(new URL(base).port), '127.0.0.1', () => socket.write(`${head}\r\n\r\n${sent}`));
    return socket.on('data', (chunk) => heard.set(socket, `${heard.get(socket) ?? ''}${chunk.toString()}`));
  });
  const close = () => {
    for (const socket of sockets) socket.destroy();
  };
  return { heard: () => [...heard.values()], close };
}

/** Another tenant's client asks one question after the other, and each is answered, as long as the attack goes on. */
async function besideOthers<T>(attack: Promise<T>): Promise<T> {
  let isOver = false;
  const over = attack.finally(() => (isOver = true));
  do expect((await chat('ann', valid)).status).toBe(200);
  while (!isOver);
  return over;
}

async function residentMegabytesMost(): Promise<number> {
  const status = await readFile(`/proc/${child.pid}/status`, 'utf8');
  return Number(/VmHWM:\s+(\d+) kB/.exec(status)?.[1]) / 1024;
}

async function expectAlive(): Promise<void> {
  expect(child.exitCode).toBeNull();
  expect((await chat('ann', valid)).status).toBe(200);
  expect(await residentMegabytesMost()).toBeLessThan(residentMegabytesMax);
}

function bodyOf(rest: string): Buffer {
  return Buffer.from(`${JSON.stringify(valid).slice(0, -1)},${rest}}`);
}

describe('a body that is made to hurt', () => {
  it('a body of millions of objects ends nothing: it is refused by its members, before it is parsed', async () => {
    const whole = bodyOf(`"x":[${'{},'.repeat((16 * mebibyte) / 3)}{}]`);
    const allowed = bodyOf(`"x":[${'{},'.repeat((7 * mebibyte) / 3)}{}]`);
    const answers = await besideOthers(Promise.all([chat('eve', whole), chat('eve', allowed), chat('eve', allowed)]));
    expect(answers.map(({ status, body }) => [status, body.error?.code])).toEqual([
      [413, 'request_too_large'],
      [400, 'invalid_json'],
      [400, 'invalid_json'],
    ]);
    expect(answers[1]?.body.error?.message).toContain('more than 50000 members and items');
    await expectAlive();
  });

  it('thirty bodies of 15 MiB are not kept for feedback, whether they say how long they are or not', async () => {
    const piece = Buffer.alloc(mebibyte, 'x');
    const declared = Array.from({ length: 30 }, () => send('eve', '/feedback', Buffer.alloc(15 * mebibyte, 'x')));
    const chunked = Array.from({ length: 10 }, () => sendChunked('eve', '/feedback', piece, 15));
    const statuses = await besideOthers(
      Promise.all([...declared.map((sent) => sent.then((a) => a.status)), ...chunked]),
    );
    // A client that had more to send may find its connection closed before it has read why.
    expect(statuses.filter((status) => status !== 0 && status !== 413)).toEqual([]);
    expect(statuses).toContain(413);
    await expectAlive();
  });

  it('hundreds of thousands of small messages are refused by their number', async () => {
    const many = (count: number) => ({ ...valid, messages: Array.from({ length: count }, () => messages[0]) });
    const sent = [many(400_000), many(100_000), many(2_001)].map((body) => chat('eve', body));
    const answers = await besideOthers(Promise.all(sent));
    expect(answers.map(({ status }) => status)).toEqual([413, 400, 400]);
    expect(answers[2]?.body.error?.message).toContain('at most 2000 messages');
    await expectAlive();
  });

  it('a tool call’s arguments that are millions of objects are passed on and not parsed', async () => {
    const call = { id: 'a', type: 'function', function: { name: 'f', arguments: `[${'{},'.repeat(2_700_000)}{}]` } };
    const conversation = [{ role: 'assistant', content: null, tool_calls: [call] }, ...messages];
    expect((await besideOthers(chat('eve', { ...valid, messages: conversation }))).status).toBe(200);
    await expectAlive();
  });
});

describe('bodies that are kept open', () => {
  it('one client’s bodies fill its own room, and leave others theirs', async () => {
    const { heard, close } = sendHeads(url, 'eve', 20, '{');
    // Half of a sixth of 256 MiB and a little: three bodies, and no fourth.
    await until(() => heard().length >= 17, { what: 'the refusals' });
    for (const text of heard()) expect(text).toMatch(/^HTTP\/1\.1 429 [\s\S]*Retry-After: 1\r\n/);
    await expectAlive();
    close();
    await until(async () => (await chat('eve', { ...valid, note: 'x'.repeat(6 * mebibyte) })).status !== 429);
  });
});

describe('a request’s head', () => {
  it.each([
    ['a key that is none', 'nobody', 1, 1, /^HTTP\/1\.1 401 /],
    // Three of a minute are let in, and three more where another one begins.
    ['a key whose minute is used up', 'sip', 8, 2, /^HTTP\/1\.1 429 [^]*This key's limit of 3 requests a minute/],
  ])('a body that has not come is not waited for before a refusal: %s', async (_whose, key, count, refusals, reply) => {
    const { heard, close } = sendHeads(started.url, key, count);
    const refused = () => heard().filter((text) => reply.test(text)).length;
    await until(() => refused() >= refusals, { what: 'the refusals' });
    close();
  });
});

describe('one client’s share', () => {
  it('limits by the minute hold on every route, and without Valkey', async () => {
    await around.valkey.kill();
    const models = () => send('few', '/models', undefined, started.url, 'GET');
    // A minute may begin in between.
    const statuses: number[] = [];
    for (let asked = 0; asked < 70; asked += 1) statuses.push((await models()).status);
    expect(statuses).toContain(429);
    expect(statuses.slice(0, 3)).toContain(200);
    // What is only looked at takes nothing from what is asked.
    expect((await send('few', '/sessions/unknown', undefined, started.url, 'DELETE')).status).not.toBe(429);
    await around.valkey.restart();
  });

  it('sessions that are unknown are looked for in the log a few times, and then no more', async () => {
    const close = (key: string) => send(key, '/sessions/unknown', undefined, started.url, 'DELETE');
    const codes: (string | undefined)[] = [];
    for (let asked = 0; asked < 30; asked += 1) codes.push((await close('eve')).body.error?.code);
    const found = 'session_not_found';
    expect(codes.filter((code) => code === found).length).toBeLessThan(20);
    expect(new Set(codes)).toEqual(new Set([found, 'rate_limit_exceeded']));
    // Another tenant's client may search all the same.
    expect((await close('ann')).body.error?.code).toBe(found);
  });

  it('a client that does not read a whole answer holds its slot until it is cut', async () => {
    Object.assign(leased.engine.settings, { answerTokens: 100_000, maxContext: 4_000_000 });
    const body = JSON.stringify({ model: 'backtalk', messages, logprobs: true });
    const head = [
      'POST /v1/chat/completions HTTP/1.1',
      'Host: localhost',
      'Authorization: Bearer one',
      'Content-Type: application/json',
      `Content-Length: ${body.length}`,
    ].join('\r\n');
    const askedBefore = leased.engine.counts.requests;
    const cutBefore = await started.metric('slow_readers_total');
    const socket = connect(started.gateway.ports.http, '127.0.0.1', () => socket.write(`${head}\r\n\r\n${body}`));
    socket.pause();
    await until(() => leased.engine.counts.requests > askedBefore);
    await until(async () => (await chat('one', valid, started.url)).status === 429, { what: 'a slot that is taken' });
    Object.assign(leased.engine.settings, { answerTokens: 12, maxContext: 8_192 });
    await until(async () => (await started.metric('slow_readers_total')) > cutBefore, { what: 'the cut' });
    expect((await chat('one', valid, started.url)).status).toBe(200);
    socket.destroy();
  });

  it('one key’s answers leave a quarter of the engine to others', async () => {
    leased.engine.settings.firstTokenMs = 60_000;
    const leaving = new AbortController();
    const held = Array.from({ length: 6 }, () =>
      fetch(`${started.url}/chat/completions`, {
        method: 'POST',
        headers: { 'content-type': 'application/json', authorization: 'Bearer eve' },
        body: JSON.stringify(valid),
        signal: leaving.signal,
      }),
    );
    await until(() => leased.engine.counts.running === held.length, { what: 'the answers that are held' });
    leased.engine.settings.firstTokenMs = 0;
    const refused = { status: 429, body: { error: { code: 'server_overloaded' } } };
    expect(await chat('eve', valid, started.url)).toMatchObject(refused);
    expect((await chat('ann', valid, started.url)).status).toBe(200);
    leaving.abort();
    await Promise.allSettled(held);
    await until(async () => (await chat('eve', valid, started.url)).status === 200, { what: 'places that are free' });
  });

  it('a client that asks behind many requests of another one is not answered after them', async () => {
    const wide = await startGateway(around, { BACKTALK_KEYS_FILE: started.environment['BACKTALK_KEYS_FILE'] ?? '' });
    await ready(wide);
    const answered: string[] = [];
    const line = (key: string) => {
      const socket = connect(wide.gateway.ports.http, '127.0.0.1');
      socket.on('data', (chunk) => {
        if (/^HTTP\/1\.1 200 /.test(chunk.toString())) answered.push(key);
      });
      return socket;
    };
    const keys = [...Array.from({ length: 180 }, () => 'eve'), 'ann'];
    const lines = keys.map((key) => ({ key, socket: line(key) }));
    await Promise.all(lines.map(({ socket }) => once(socket, 'connect')));
    const body = JSON.stringify(valid);
    // All of them lie ready before the gateway reads the first.
    for (const { key, socket } of lines)
      socket.write(
        `POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer ${key}\r\n` +
          `Content-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n${body}`,
      );
    await until(() => answered.length === keys.length, { what: 'all answers' });
    expect(answered.indexOf('ann')).toBeLessThan(120);
    for (const { socket } of lines) socket.destroy();
    await wide.gateway.stop();
  });

  it('what engines say to many requests of one key at once is passed on a little in each turn of the event loop', async () => {
    const wide = await startGateway(around, { BACKTALK_KEYS_FILE: started.environment['BACKTALK_KEYS_FILE'] ?? '' });
    await ready(wide);
    const answers: ServerResponse[] = [];
    const say = (answer: ServerResponse, content: string) =>
      answer.write(`data: ${JSON.stringify({ choices: [{ index: 0, delta: { content } }] })}\n\n`);
    const engine = createServer((_, answer) => {
      say(answer.writeHead(200, { 'content-type': 'text/event-stream' }), 'begun');
      answers.push(answer);
    });
    await new Promise<void>((resolve) => engine.listen(0, '127.0.0.1', resolve));
    const url = `http://127.0.0.1:${String((engine.address() as AddressInfo).port)}`;
    const other = await startLeasedEngine(around, 'engine-2', { url, versions: ['backtalk-v2'] });
    let turn = 0;
    const count = (): void => {
      turn += 1;
      if (heardIn.length < 40) setImmediate(count);
    };
    let begun = 0;
    /** In which turn of the event loop each was heard: gateway, engine and clients share it. */
    const heardIn: number[] = [];
    const ask = () => {
      const headers = { 'content-type': 'application/json', authorization: 'Bearer eve' };
      const asking = httpRequest(`${wide.url}/chat/completions`, { method: 'POST', headers }, (response) => {
        response
          .on('error', () => undefined)
          .on('data', (piece: Buffer) => {
            if (piece.includes('begun')) begun += 1;
            if (piece.includes('said')) heardIn.push(turn);
          });
      });
      asking.end(JSON.stringify({ ...valid, model: 'backtalk-v2', stream: true }));
    };
    for (let asked = 0; asked < 40; asked += 1) ask();
    await until(() => begun === 40, { what: 'forty answers that have begun' });
    count();
    for (const answer of answers) say(answer, 'said');
    await until(() => heardIn.length === 40, { what: 'what was said to all of them' });
    expect(new Set(heardIn).size).toBeGreaterThan(5);
    engine.closeAllConnections();
    engine.close();
    await other.stop();
    await wide.gateway.stop();
  });

  it('feedback finds the owner of a turn without reading the turn’s text', async () => {
    leased.engine.settings.maxContext = 4_000_000;
    const content = randomBytes(1.5 * mebibyte).toString('base64');
    const { body } = await chat('eve', { ...valid, messages: [{ role: 'user', content }] }, started.url);
    leased.engine.settings.maxContext = 8_192;
    // The text lies beside the log, and now it does not.
    await rm(around.directory.join('blobs'), { recursive: true });
    const give = () => send('eve', '/feedback', { turn_id: body.id, score: 1 }, started.url);
    expect(await give()).toMatchObject({ status: 200, body: { stored: true, repeated: false } });
  });

  it('a client’s trace is followed, and whether it is sampled is not the client’s to say', async () => {
    const trace = newTrace();
    const headers = { 'content-type': 'application/json', authorization: 'Bearer ann', traceparent: trace.traceparent };
    const options = { method: 'POST', headers, body: JSON.stringify(valid) };
    const { id = '' } = (await (await fetch(`${started.url}/chat/completions`, options)).json()) as Answered['body'];
    const fact = await around.reader.last('turnOpened', { turn: id });
    expect(fact?.trace.traceId).toBe(trace.traceId);
    expect(trace.traceparent).toMatch(/-01$/);
    expect(fact?.trace.traceparent).toMatch(/-00$/);
    const untraced = (await chat('ann', valid, started.url)).body.id ?? '';
    expect((await around.reader.last('turnOpened', { turn: untraced }))?.trace.traceparent).toMatch(/-00$/);
  });
});
