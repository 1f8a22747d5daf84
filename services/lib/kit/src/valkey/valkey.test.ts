import { EventEmitter } from 'node:events';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { silentLogger, startValkey, until, type TestValkey } from '../testing/index.js';
import { connectionOptions, connectValkey, logValkeyErrors, valkeyError } from './valkey.js';

let valkey: TestValkey;

beforeAll(async () => {
  valkey = await startValkey();
});

afterAll(() => valkey.stop());

const options = () => ({ url: valkey.url, name: 'test', logger: silentLogger });

describe('connectValkey', () => {
  it('fails commands of an asker fast while Valkey is stopped, and works again after its return', async () => {
    const client = connectValkey(options());
    await until(() => client.status === 'ready');
    await valkey.kill();
    const started = performance.now();
    const failure = await client.get('key').catch((error: unknown) => valkeyError(error, 'read a key'));
    expect(failure).toMatchObject({ code: 'valkey_unavailable', status: 503 });
    expect(performance.now() - started).toBeLessThan(15_000);
    await valkey.restart();
    await until(() => client.set('key', 'value').catch(() => false), { what: 'writing after the return' });
    client.disconnect();
  });

  it('lets commands of a waiter wait until Valkey is there', async () => {
    await valkey.kill();
    const client = connectValkey(options(), 'waiter');
    const answer = client.ping();
    await valkey.restart();
    expect(await answer).toBe('PONG');
    client.disconnect();
  });

  it('notices a Valkey that stopped without closing its connections', async () => {
    const client = connectValkey(options());
    await until(() => client.status === 'ready');
    valkey.pause();
    const started = performance.now();
    const failure = await client.get('key').catch((error: unknown) => valkeyError(error, 'read a key'));
    expect(failure).toMatchObject({ code: 'valkey_unavailable' });
    expect(performance.now() - started).toBeLessThan(15_000);
    valkey.resume();
    await until(() => client.set('key', 'value').catch(() => false), { what: 'writing after the silence' });
    client.disconnect();
  });

  it('one line is logged for each outage, also where the next is like the one before', () => {
    const lines: string[] = [];
    const source = new EventEmitter();
    const logger = { ...silentLogger, warn: (event: string) => void lines.push(event) };
    logValkeyErrors(source, { name: 'test', logger });
    const refused = Object.assign(new Error('refused'), { code: 'ECONNREFUSED' });
    for (const event of ['error', 'error', 'ready', 'error']) source.emit(event, refused);
    expect(lines).toEqual(['valkey_error', 'valkey_error']);
  });

  it('an address of IPv6 is given without its brackets', () => {
    expect(connectionOptions({ url: 'redis://[::1]:30042', name: 'test' }, 'asker')).toMatchObject({ host: '::1' });
  });

  it('reads user, password, database and encryption from the URL', () => {
    const url = 'rediss://some%40user:pass%3Aword@valkey.example/3';
    expect(connectionOptions({ url, name: 'test' }, 'asker')).toMatchObject({
      host: 'valkey.example',
      port: 6379,
      db: 3,
      username: 'some@user',
      password: 'pass:word',
      tls: {},
      enableOfflineQueue: false,
    });
  });
});
