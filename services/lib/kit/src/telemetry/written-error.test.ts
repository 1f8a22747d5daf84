import { Redis } from 'ioredis';
import { ClientError, Status } from 'nice-grpc-common';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { z } from 'zod';
import { connectBroker } from '../broker/connect.js';
import { openS3BlobStore } from '../blobs/s3-blob-store.js';
import { startNats, type TestNats } from '../testing/nats-server.js';
import { startValkey, type TestValkey } from '../testing/valkey-server.js';
import { valkeyError } from '../valkey/valkey.js';
import { createLogger } from './logger.js';

/** No word of any language, and found whole wherever it goes. */
const canary = 'zqxcanaryvwk';

let nats: TestNats;
let valkey: TestValkey;
let written = '';
const logger = createLogger({
  service: 'test',
  level: 'debug',
  destination: {
    write: (line: string) => {
      written += line;
    },
  },
});

beforeAll(async () => {
  [nats, valkey] = await Promise.all([startNats({ streams: false }), startValkey()]);
});

afterAll(async () => {
  await Promise.all([nats.stop(), valkey.stop()]);
});

async function failureOf(work: () => unknown): Promise<unknown> {
  try {
    await work();
  } catch (error) {
    return error;
  }
  return undefined;
}

const faults: Readonly<Record<string, () => unknown>> = {
  'a body that is no JSON': (): unknown => JSON.parse(`${canary} is what I said`),
  'a body that breaks off': (): unknown => JSON.parse(`{"words": "${canary}`),
  'an answer of another form': () =>
    z.strictObject({ kind: z.literal('a') }).parse({ kind: canary, [canary]: canary, 'x y': [canary] }),
  'an address that is none': () => new URL(`http://user:${canary}@[broken`),
  'a header that cannot be sent': () => new Headers([['authorization', `Bearer ${canary}\u0000`]]),
  'an address with a password': () => fetch(`http://user:${canary}@127.0.0.1:1/`),
  'what a peer says': () => {
    throw new ClientError('/a/b', Status.INTERNAL, `cannot read ${canary}`);
  },
  'what is no error': () => {
    // eslint-disable-next-line @typescript-eslint/only-throw-error -- libraries throw what they like
    throw { [canary]: canary };
  },
  'a wrong password of Valkey': async () => {
    const { host } = new URL(valkey.url);
    const owner = new Redis(valkey.url);
    await owner.config('SET', 'requirepass', 'another');
    owner.disconnect();
    const client = new Redis(`redis://:${canary}@${host}`, { lazyConnect: true, retryStrategy: () => null });
    const failure = new Promise<Error>((resolve) => client.on('error', resolve));
    await client.connect().catch(() => undefined);
    client.disconnect();
    throw await failure;
  },
  'a wrong password of the broker': () =>
    connectBroker({ ...nats.credentials('gateway'), password: canary, name: 'test', logger }),
  'a wrong secret of the S3 server': async () => {
    const endpoint = nats.url.replace('nats:', 'http:');
    const keys = { accessKey: canary, secretKey: canary };
    const store = await openS3BlobStore({ endpoint, bucket: 'b', region: 'r', ...keys });
    await store.has('0'.repeat(64));
  },
};

describe('an error in the log', () => {
  it.each(Object.keys(faults))('tells nothing of what caused it: %s', async (name) => {
    written = '';
    const error = await failureOf(() => faults[name]?.());
    expect(error).toBeDefined();
    logger.error('failed', { error });
    logger.error('failed', { err: error });
    logger.error('failed', { error: valkeyError(error, 'test') });
    expect(written).toContain('"event":"failed"');
    expect(written).not.toContain(canary);
  });

  it('keeps the name, the code and the way to the fault', () => {
    written = '';
    logger.error('failed', { error: Object.assign(new TypeError('a plain word'), { code: 'ERR_X', field: canary }) });
    const { error } = JSON.parse(written) as { readonly error: Readonly<Record<string, string>> };
    expect(error).toMatchObject({ type: 'TypeError', code: 'ERR_X', message: 'a plain word' });
    expect(error['stack']).toMatch(/^ {4}at .*written-error\.test/);
  });
});
