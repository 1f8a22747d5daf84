import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { freePort, silentLogger, startNats, until, type TestNats } from '../testing/index.js';
import { connectBroker } from './connect.js';
import { checkStreams, ensureStreams } from './streams.js';

let nats: TestNats;

beforeAll(async () => {
  nats = await startNats({ streams: false });
});

afterAll(() => nats.stop());

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

  it('notices a broker that has stopped without closing', async () => {
    const broker = await nats.connect('gateway');
    nats.pause();
    await until(() => broker.status() === 'down', { what: 'noticing the silence' });
    nats.resume();
    await until(() => broker.status() === 'up');
  });

  it('with a wrong password ends at once, with words that say what to check', async () => {
    const connecting = connectBroker({
      ...nats.credentials('gateway'),
      password: 'no',
      name: 't',
      logger: silentLogger,
    });
    await expect(connecting).rejects.toMatchObject({ code: 'broker_refused', retry: 'stop' });
  });

  it('to nobody says once that it waits, and ends at its deadline', async () => {
    const url = `nats://127.0.0.1:${await freePort()}`;
    const told: string[] = [];
    const logger = { ...silentLogger, warn: (event: string) => told.push(event) };
    const options = { ...nats.credentials('gateway'), url, name: 't', logger, connectTimeoutMs: 5_000 };
    await expect(connectBroker(options)).rejects.toMatchObject({ code: 'broker_unavailable', retry: 'later' });
    expect(told).toEqual(['broker_awaited']);
  });
});

describe('streams', () => {
  it('are missed in one line, made once, and made again without harm', async () => {
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
