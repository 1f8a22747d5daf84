import { startFakeEngine, type FakeEngine } from '@backtalk/dialects/testing';
import { readConfig } from '@backtalk/kit';
import { grpcClient } from '@backtalk/kit/grpc';
import { silentLogger, startNats, TemporaryDirectory, type TestNats } from '@backtalk/kit/testing';
import { LoaderServiceDefinition } from '@backtalk/proto/control';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { loaderSettings } from './config.js';
import { createLoader, type Loader } from './service.js';

const secret = 'the secret of publisher and loader';
const directory = new TemporaryDirectory('loader');
let nats: TestNats;
let engine: FakeEngine;
let loader: Loader;

beforeAll(async () => {
  [nats, engine] = await Promise.all([startNats(), startFakeEngine()]);
  const { url, user, password } = nats.credentials('loader');
  const config = readConfig(loaderSettings, {
    BACKTALK_NATS_URL: url,
    BACKTALK_NATS_USER: user,
    BACKTALK_NATS_PASSWORD: password,
    BACKTALK_HEALTH_ADDRESS: '127.0.0.1:0',
    BACKTALK_GRPC_ADDRESS: '127.0.0.1:0',
    BACKTALK_ENGINE_URL: engine.url,
    BACKTALK_ADAPTER_DIR: directory.join('adapters'),
    BACKTALK_BLOB_STORE: `folder:${directory.join('blobs')}`,
    BACKTALK_PUBLISHER_TO_LOADER_TOKEN: secret,
  });
  loader = createLoader(config, { logger: silentLogger });
  await loader.start();
});

afterAll(async () => {
  await loader.stop();
  await Promise.all([engine.stop(), nats.stop()]);
  directory.remove();
});

async function outcome(publisherToLoader: string, caller: 'publisher' | 'trainer' = 'publisher'): Promise<unknown> {
  const wire = { tokens: { publisherToLoader } };
  const client = grpcClient(LoaderServiceDefinition, `127.0.0.1:${loader.ports.grpc}`, { caller, wire });
  const asked = client.retire({ policy: 'backtalk', version: 'backtalk-v1', fence: 0 }, { deadlineMs: 30_000 });
  return asked.catch((error: unknown) => error).finally(() => client.close());
}

it('a loader answers the publisher that has the secret of the two, and no other service', async () => {
  // It looks at what is asked.
  expect(await outcome(secret)).toMatchObject({ code: 'weights_version_wanted' });
  expect(await outcome('another')).toMatchObject({ code: 'caller_unknown', status: 401 });
  expect(await outcome('')).toMatchObject({ code: 'caller_unknown', status: 401 });
  expect(await outcome(secret, 'trainer')).toMatchObject({ code: 'caller_forbidden', status: 403 });
});
