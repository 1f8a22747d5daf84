import { readdirSync, readFileSync, readlinkSync } from 'node:fs';
import { connect as connectPlain, createServer, type AddressInfo, type Server } from 'node:net';
import { DebugEvents } from 'nats';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { freePort } from '../testing/free-port.js';
import { startNats, type TestNats } from '../testing/nats-server.js';
import { silentLogger } from '../testing/silent-logger.js';
import { until } from '../testing/until.js';
import { connectBroker } from './connect.js';
import { mendTransport } from './mended-transport.js';
import { checkStreams, ensureStreams } from './streams.js';

let nats: TestNats;

beforeAll(async () => {
  nats = await startNats({ streams: false });
});

afterAll(() => nats.stop());

/** Addresses from which this process is connected to a port, as the kernel sees them: what other processes dial is theirs. */
function connectionsTo(port: number): string[] {
  const established = '01';
  const end = `:${port.toString(16).toUpperCase().padStart(4, '0')}`;
  const own = new Set(readdirSync('/proc/self/fd').map((descriptor) => socketOf(descriptor)));
  const lines = readFileSync('/proc/net/tcp', 'utf8').trim().split('\n').slice(1);
  return lines.flatMap((line) => {
    const [, local = '', remote = '', state, , , , , , inode] = line.trim().split(/\s+/);
    return remote.endsWith(end) && state === established && own.has(`socket:[${inode}]`) ? [local] : [];
  });
}

/** What a descriptor stands for. The one with which they were listed is closed by now. */
function socketOf(descriptor: string): string {
  try {
    return readlinkSync(`/proc/self/fd/${descriptor}`);
  } catch {
    return '';
  }
}

/** Stands before the broker and changes what it says. */
async function startFront(port: number, change: (said: string) => string): Promise<Server> {
  const front = createServer((socket) => {
    const behind = connectPlain(port, '127.0.0.1');
    behind.on('data', (piece: Buffer) => socket.write(change(piece.toString('latin1')), 'latin1'));
    socket.pipe(behind);
    const close = () => {
      socket.destroy();
      behind.destroy();
    };
    for (const end of [socket, behind]) end.on('error', close).on('close', close);
  });
  await new Promise<void>((resolve) => front.listen(0, '127.0.0.1', resolve));
  return front;
}

describe('a connection', () => {
  it('says when the broker goes and comes back', async () => {
    const broker = await nats.connect('gateway');
    const changes: string[] = [];
    const off = broker.onStatus((status) => changes.push(status));
    await nats.restart();
    await until(() => changes.length === 2);
    expect(changes).toEqual(['down', 'up']);
    off();
    await broker.close();
    await until(() => broker.status() === 'down');
    expect(changes).toHaveLength(2);
  });

  it('connects again at once though the clock was set back meanwhile', async () => {
    const broker = await nats.connect('gateway');
    const now = Date.now.bind(Date);
    const clock = vi.spyOn(Date, 'now').mockImplementation(() => now() - 3_600_000);
    const changes: string[] = [];
    broker.onStatus((status) => changes.push(status));
    await nats.restart();
    await until(() => changes.join() === 'down,up');
    clock.mockRestore();
    await broker.close();
  });

  it('refuses to connect with a version of the client library whose transport is not known', () => {
    expect(() => mendTransport('2.30.0')).toThrow(
      'The library nats is 2.30.0, and its transport is repaired for 2.29.3 only',
    );
    expect(() => mendTransport()).not.toThrow();
  });

  it('a wrong password ends connecting at once, with words that say what to check', async () => {
    const connecting = connectBroker({
      ...nats.credentials('gateway'),
      password: 'no',
      name: 't',
      logger: silentLogger,
    });
    await expect(connecting).rejects.toMatchObject({ code: 'broker_refused', retry: 'stop' });
  });

  it.each([
    ['2.11.9', 'broker_too_old'],
    ['2.12.0-RC.1', 'connected'],
    ['10.0.0', 'connected'],
  ])('a broker that says that it is %s: %s', async (version, expected) => {
    const front = await startFront(nats.port, (text) => text.replace(/"version":"[^"]*"/, `"version":"${version}"`));
    const url = `nats://127.0.0.1:${(front.address() as AddressInfo).port}`;
    const options = { ...nats.credentials('gateway'), url, name: 't', logger: silentLogger, connectTimeoutMs: 5_000 };
    const outcome = await connectBroker(options).then(
      async (broker) => {
        await broker.close();
        return { code: 'connected' };
      },
      (error: unknown) => error,
    );
    expect(outcome).toMatchObject(expected === 'connected' ? { code: expected } : { code: expected, retry: 'stop' });
    front.close();
  });
});

// Each waits for as long as the library takes, beside the others and on a broker of its own.
describe.concurrent('a broker that is silent', () => {
  it('a connection notices a broker that has stopped without closing', async () => {
    const silent = await startNats({ streams: false });
    const broker = await silent.connect('gateway');
    silent.pause();
    await until(() => broker.status() === 'down', { what: 'noticing the silence' });
    silent.resume();
    await until(() => broker.status() === 'up');
    await silent.stop();
  });

  it('a connection is whole again after a broker that stood still for longer than connecting may take', async () => {
    const silent = await startNats({ streams: false });
    const broker = await silent.connect('gateway');
    const changes: string[] = [];
    const seen = { dials: 0, pings: 0 };
    broker.onStatus((status) => changes.push(status));
    const follow = async () => {
      for await (const { type } of broker.nc.status()) {
        if (type === DebugEvents.Reconnecting) seen.dials += 1;
        if (type === DebugEvents.PingTimer) seen.pings += 1;
      }
    };
    follow().catch(() => undefined);
    silent.pause();
    await until(() => seen.dials > 4, { what: 'Dials that were given up', timeoutMs: 60_000 });
    silent.resume();
    await until(() => broker.status() === 'up');
    seen.pings = 0;
    await until(() => seen.pings > 2, { what: 'Three pings', timeoutMs: 60_000 });
    expect(changes).toEqual(['down', 'up']);
    expect(connectionsTo(silent.port)).toHaveLength(1);
    await broker.close();
    await silent.stop();
  });

  it('a connection gives a broker up that stands still while much is on its way to it', async () => {
    const silent = await startNats({ streams: false });
    const broker = await silent.connect('admin');
    silent.pause();
    const piece = new Uint8Array(1_000_000);
    for (let sent = 0; sent < 20; sent += 1) broker.nc.publish('backtalk.nobody', piece);
    await until(() => broker.status() === 'down', { what: 'noticing the silence' });
    silent.resume();
    await until(() => broker.status() === 'up');
    await broker.close();
    await silent.stop();
  });

  it('connecting to an absent broker reports once that it waits, and ends at its deadline', async () => {
    const url = `nats://127.0.0.1:${await freePort()}`;
    const told: string[] = [];
    const logger = { ...silentLogger, warn: (event: string) => told.push(event) };
    const options = { ...nats.credentials('gateway'), url, name: 't', logger, connectTimeoutMs: 5_000 };
    await expect(connectBroker(options)).rejects.toMatchObject({ code: 'broker_unavailable', retry: 'later' });
    expect(told).toEqual(['broker_awaited']);
  });
});

describe('streams', () => {
  it('missing streams are named in one line, made once, and made again without harm', async () => {
    const gateway = await nats.connect('gateway');
    await expect(checkStreams(gateway, ['TURNS'])).rejects.toMatchObject({ code: 'stream_missing', retry: 'stop' });
    const admin = await nats.connect('admin');
    await ensureStreams(admin);
    await admin.js.publish('backtalk.turn.opened.a.b.c', 'kept');
    await ensureStreams(admin, { turnsBytesMax: 10_000_000 });
    const { config, state } = await admin.jsm.streams.info('TURNS');
    expect(config.max_bytes).toBe(10_000_000);
    expect(state.messages).toBe(1);
    await checkStreams(gateway, ['TURNS', 'KV_routes']);
  });
});
