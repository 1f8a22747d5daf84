import { fork, type ChildProcess } from 'node:child_process';
import { mkdir, readdir, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import OpenAI from 'openai';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { freePort, until } from '@backtalk/kit/testing';
import { TurnCompleted } from '@backtalk/proto/facts';
import { encodeRecord, type SpoolRecord } from '../domain/spool-record.js';
import {
  gatewayEnvironment,
  ready,
  startGateway,
  startLeasedEngine,
  startSurroundings,
  type Environment,
  type LeasedEngine,
  type StartedGateway,
  type Surroundings,
} from '../testing/started-gateway.js';

let around: Surroundings;
let leased: LeasedEngine;
const gateways: StartedGateway[] = [];
const processes: ChildProcess[] = [];

beforeAll(async () => {
  around = await startSurroundings();
  leased = await startLeasedEngine(around, 'engine-1');
});

afterEach(async () => {
  leased.engine.settings.tokenMs = 0;
  for (const { gateway } of gateways.splice(0)) await gateway.stop();
  for (const child of processes.splice(0)) child.kill('SIGKILL');
});

afterAll(async () => {
  await leased.stop();
  await around.stop();
});

async function started(changes: Environment = {}): Promise<StartedGateway> {
  const gateway = await startGateway(around, changes);
  gateways.push(gateway);
  await ready(gateway);
  return gateway;
}

async function streamed(url: string, content: string): Promise<string> {
  const client = new OpenAI({ baseURL: url, apiKey: 'none', maxRetries: 0 });
  const stream = await client.chat.completions.create({
    model: 'backtalk',
    messages: [{ role: 'user', content }],
    stream: true,
  });
  let turn = '';
  let finished = false;
  for await (const chunk of stream) {
    turn = chunk.id;
    finished ||= chunk.choices[0]?.finish_reason === 'stop';
  }
  expect(finished).toBe(true);
  return turn;
}

async function inLog(turn: string): Promise<void> {
  await until(() => around.reader.last('turnOpened', { turn }), { what: `turn.opened of ${turn}` });
  await until(() => around.reader.last('turnCompleted', { turn }), { what: `turn.completed of ${turn}` });
}

describe('a broker that dies under load', () => {
  it('a broker that dies under load costs no answer and no turn: they go to the spool, and drain when it is back', async () => {
    const gateway = await started();
    leased.engine.settings.tokenMs = 5;
    const before = Array.from({ length: 5 }, (_, index) => streamed(gateway.url, `before ${index}`));
    const across = Array.from({ length: 5 }, (_, index) => streamed(gateway.url, `across ${index}`));
    await until(() => leased.engine.counts.running > 0);
    await around.nats.kill();
    const during = Array.from({ length: 10 }, (_, index) => streamed(gateway.url, `during ${index}`));
    const turns = await Promise.all([...before, ...across, ...during]);
    expect(await gateway.metric('spool_bytes')).toBeGreaterThan(0);
    await around.nats.restart();
    await Promise.all(turns.map(inLog));
    await until(async () => (await gateway.metric('spool_bytes')) === 0);
    await until(async () => (await gateway.metric('breaker_open')) === 0);
    const after = await streamed(gateway.url, 'after');
    expect(await around.reader.last('turnCompleted', { turn: after })).toBeDefined();
  });

  it('answers 503 when the spool is full and capture is required', async () => {
    const gateway = await started({ BACKTALK_SPOOL_BYTES_MAX: String(1024 * 1024), BACKTALK_STORE_WAIT: '50ms' });
    const client = new OpenAI({ baseURL: gateway.url, apiKey: 'none', maxRetries: 0 });
    await around.nats.kill();
    const ask = () =>
      client.chat.completions.create({ model: 'backtalk', messages: [{ role: 'user', content: noise(200_000) }] });
    const refused = async (): Promise<unknown> => {
      for (;;) {
        const error = await ask().then(
          () => undefined,
          (thrown: unknown) => thrown,
        );
        if (error !== undefined) return error;
      }
    };
    leased.engine.settings.maxContext = 1_000_000;
    expect(await refused()).toMatchObject({ status: 503, code: 'capture_unavailable' });
    expect(await gateway.metric('spool_bytes_max')).toBe(1024 * 1024);
    await around.nats.restart();
    await until(async () => (await gateway.metric('spool_bytes')) === 0);
    expect((await ask()).model).toBe('backtalk');
  });

  it('leaves answers uncaptured, and counts them, when the spool is full and capture is best-effort', async () => {
    const gateway = await started({
      BACKTALK_SPOOL_BYTES_MAX: String(1024 * 1024),
      BACKTALK_STORE_WAIT: '50ms',
      BACKTALK_CAPTURE: 'best-effort',
    });
    const client = new OpenAI({ baseURL: gateway.url, apiKey: 'none', maxRetries: 0 });
    await around.nats.kill();
    const ask = () =>
      client.chat.completions.create({ model: 'backtalk', messages: [{ role: 'user', content: noise(400_000) }] });
    for (let asked = 0; asked < 6; asked += 1) await ask();
    expect(await gateway.metric('turns_stored_total{where="nowhere"}')).toBeGreaterThan(0);
    const question = { role: 'user' as const, content: `Lost. ${noise(400_000)}` };
    const lost = await client.chat.completions.create({ model: 'backtalk', messages: [question] });
    await around.nats.restart();
    await until(async () => (await gateway.metric('spool_bytes')) === 0);
    // What goes on from an answer that is nowhere is stored whole.
    const answer = { role: 'assistant' as const, content: lost.choices[0]?.message.content ?? '' };
    const messages = [question, answer, { role: 'user' as const, content: 'Shorter.' }];
    const { id } = await client.chat.completions.create({ model: 'backtalk', messages });
    await inLog(id);
    const fact = await around.reader.last('turnOpened', { turn: id });
    expect(fact?.message).toMatchObject({ provisionalParent: '', conversation: { baseTurn: '', sharedMessages: 0 } });
    // But its session, and a "no" to training, go along.
    expect(fact?.message.provisionalSession).toBe(lost.id.replace('turn_', 'session_'));
  });
});

/** Text that does not compress. */
function noise(length: number): string {
  let state = 1;
  const letter = (): string => {
    state = (state * 48_271) % 2_147_483_647;
    return String.fromCharCode(33 + (state % 90));
  };
  return Array.from({ length }, letter).join('');
}

describe('a gateway that is killed while the broker is away', () => {
  it('a gateway killed while the broker is away has lost nothing when it starts again', async () => {
    const port = await freePort();
    const environment = gatewayEnvironment(around, {
      BACKTALK_LISTEN: `127.0.0.1:${port}`,
      BACKTALK_HEALTH_ADDRESS: `127.0.0.1:${await freePort()}`,
      BACKTALK_LOG_LEVEL: 'silent',
      BACKTALK_STORE_WAIT: '300ms',
    });
    const url = `http://127.0.0.1:${port}/v1`;
    const first = await startProcess(environment);
    await around.nats.kill();
    const turns = await Promise.all(Array.from({ length: 8 }, (_, index) => streamed(url, `kept ${index}`)));
    await killed(first);
    expect(await readdir(environment['BACKTALK_SPOOL_DIR'] ?? '')).not.toEqual([]);
    await around.nats.restart();
    const second = await startProcess(environment);
    await Promise.all(turns.map(inLog));
    await until(async () => (await readdir(environment['BACKTALK_SPOOL_DIR'] ?? '')).length === 0);
    await killed(second);
  });
});

async function startProcess(environment: Environment): Promise<ChildProcess> {
  const main = new URL('../../dist/main.js', import.meta.url);
  const child = fork(main, { env: { ...environment }, stdio: 'ignore' });
  processes.push(child);
  const health = `http://${environment['BACKTALK_HEALTH_ADDRESS'] ?? ''}/readyz`;
  await until(async () => (await fetch(health)).status === 200, { timeoutMs: 30_000, what: 'the process’s readiness' });
  return child;
}

function killed(child: ChildProcess): Promise<void> {
  return new Promise((resolve) => {
    child.once('exit', () => resolve());
    child.kill('SIGKILL');
  });
}

describe('a spool on a disk that fails', () => {
  const finished = (number: number): SpoolRecord => {
    const id = `turn_${String(number).padStart(32, '0')}`;
    const fact = { turn: id, tenant: 't', user: 'u', policy: 'backtalk', text: 'Good evening' };
    return {
      name: 'turnCompleted',
      traceparent: '',
      message: TurnCompleted.encode(TurnCompleted.fromPartial(fact)).finish(),
    };
  };

  it('a flipped byte costs the turn that it hit; its file is kept, and what cannot be decoded stops nothing', async () => {
    const directory = around.directory.join('rotten-spool');
    await mkdir(directory);
    const turns = [1, 2, 3, 4].map(finished);
    const unreadable: SpoolRecord = { name: 'turnCompleted', traceparent: '', message: Buffer.from([0x0a, 0xff]) };
    const records = [...turns.slice(0, 2), unreadable, ...turns.slice(2)].map(encodeRecord);
    const bytes = Buffer.concat(records);
    bytes.writeUInt8((bytes[40] ?? 0) ^ 1, 40);
    await writeFile(join(directory, '000000000001.spool'), bytes);
    await writeFile(join(directory, '000000000002.spool'), encodeRecord(finished(5)));
    const gateway = await started({ BACKTALK_SPOOL_DIR: directory });
    const read = (number: number) =>
      around.reader.last('turnCompleted', { turn: `turn_${String(number).padStart(32, '0')}` });
    await until(async () => (await read(5)) !== undefined, { what: 'the turn of the next file' });
    expect((await Promise.all([1, 2, 3, 4].map(read))).map((fact) => fact !== undefined)).toEqual([
      false,
      true,
      true,
      true,
    ]);
    await until(async () => (await gateway.metric('spool_bytes')) === 0);
    expect(await readdir(directory)).toEqual(['000000000001.spool.bad']);
    expect(await gateway.metric('spool_unreadable_total')).toBe(2);
    expect(await gateway.metric('spool_rejected_total')).toBe(1);
  });

  it('a request is refused before an engine works on it while neither broker nor disk take its turn', async () => {
    const gateway = await started({ BACKTALK_STORE_WAIT: '50ms' });
    const directory = gateway.environment['BACKTALK_SPOOL_DIR'] ?? '';
    const ask = () => streamed(gateway.url, 'Is there room?');
    await around.nats.kill();
    await rm(directory, { recursive: true });
    await expect(ask()).rejects.toThrow();
    const before = leased.engine.counts.requests;
    await expect(ask()).rejects.toMatchObject({ status: 503, code: 'capture_unavailable' });
    expect(leased.engine.counts.requests).toBe(before);
    expect(await gateway.metric('spool_disk_failed')).toBe(1);
    const health = `http://127.0.0.1:${gateway.gateway.ports.health}/readyz`;
    expect((await fetch(health)).status).toBe(503);
    await mkdir(directory);
    const turn = await until(() => ask().catch(() => undefined), { what: 'a disk that takes turns again' });
    await around.nats.restart();
    await inLog(turn);
  });
});

describe('Valkey', () => {
  it('requests are answered though Valkey is away, or silent', async () => {
    const gateway = await started({ BACKTALK_LOOKUP_WAIT: '20ms' });
    await streamed(gateway.url, 'with');
    around.valkey.pause();
    await streamed(gateway.url, 'silent');
    around.valkey.resume();
    await around.valkey.kill();
    const turn = await streamed(gateway.url, 'away');
    expect(await around.reader.last('turnCompleted', { turn })).toBeDefined();
    expect(await gateway.metric('valkey_skipped_total')).toBeGreaterThan(0);
    await around.valkey.restart();
  });
});
