import { appendFile, readdir, readFile, writeFile } from 'node:fs/promises';
import { putFakeVersion, startFakeEngine, type FakeEngine, type FakeVersionOptions } from '@backtalk/dialects/testing';
import { folderBlobStore, kvBucket, readConfig, type BlobStore } from '@backtalk/kit';
import { grpcClient, type GrpcClient } from '@backtalk/kit/grpc';
import { freePort, silentLogger, startNats, TemporaryDirectory, until, type TestNats } from '@backtalk/kit/testing';
import { LoaderServiceDefinition } from '@backtalk/proto/control';
import { Lease, LoadSet, type EngineLease } from '@backtalk/proto/weights';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { loaderSettings } from './config.js';
import { createLoader, type Loader } from './service.js';

const policy = 'backtalk';
const call = { deadlineMs: 30_000 };
/** As much of a model's config.json as tells the widths of its layers. */
const smallModel = { hidden_size: 8, intermediate_size: 16, num_hidden_layers: 1, num_attention_heads: 2 };

let nats: TestNats;
let directory: TemporaryDirectory;
let blobs: BlobStore;
let engine: FakeEngine;
let loader: Loader;
let client: GrpcClient<typeof LoaderServiceDefinition>;

beforeAll(async () => {
  nats = await startNats();
});

afterAll(() => nats.stop());

beforeEach(async () => {
  directory = new TemporaryDirectory('loader');
  blobs = folderBlobStore(directory.join('blobs'));
  engine = await startFakeEngine({ port: await freePort() });
  await setLoad([]);
});

afterEach(async () => {
  client.close();
  await loader.stop();
  await engine.stop();
  directory.remove();
});

async function setLoad(versions: LoadSet['versions']): Promise<void> {
  await kvBucket(await nats.connect('publisher'), 'load', LoadSet).put(policy, { policy, versions });
}

async function start(more: Record<string, string> = {}): Promise<void> {
  const { url, user, password } = nats.credentials('loader');
  loader = createLoader(
    readConfig(loaderSettings, {
      BACKTALK_NATS_URL: url,
      BACKTALK_NATS_USER: user,
      BACKTALK_NATS_PASSWORD: password,
      BACKTALK_HEALTH_ADDRESS: '127.0.0.1:0',
      BACKTALK_GRPC_ADDRESS: '127.0.0.1:0',
      BACKTALK_INSTANCE: 'loader-1',
      BACKTALK_ENGINE_URL: engine.url,
      BACKTALK_ENGINE_CHECK: '50ms',
      BACKTALK_ENGINE_DEADLINE: '20s',
      BACKTALK_ADAPTER_DIR: directory.join('adapters'),
      BACKTALK_BLOB_STORE: `folder:${directory.join('blobs')}`,
      ...more,
    }),
    { logger: silentLogger },
  );
  await loader.start();
  client = grpcClient(LoaderServiceDefinition, `127.0.0.1:${loader.ports.grpc}`, { caller: 'publisher' });
}

const ready = () => until(() => loader.state.current.ready, { what: 'the engine to be ready' });

async function startReady(more: Record<string, string> = {}): Promise<void> {
  await start(more);
  await ready();
}

const makeVersion = (version: string, more: Partial<FakeVersionOptions> = {}) =>
  putFakeVersion({ blobs, version, ...more });

async function readLease(): Promise<Lease | undefined> {
  return (await kvBucket(await nats.connect('publisher'), 'leases', Lease).get('loader.loader-1'))?.value;
}

describe('start', () => {
  it('waits for the engine, warms it up, and only then says that it is ready', async () => {
    await engine.stop();
    await start();
    await until(() => loader.state.current.reason.includes('unreachable'));
    const health = await fetch(`http://127.0.0.1:${loader.ports.health}/readyz`);
    expect(health.status).toBe(503);
    await engine.restart();
    await ready();
    expect(engine.counts.requests).toBeGreaterThan(0);
    const lease = await until(async () => {
      const found = await readLease();
      return found?.engine?.ready === true && found;
    });
    expect(lease.grpcAddress).toBe(`127.0.0.1:${loader.ports.grpc}`);
    expect(lease.engine).toMatchObject({
      url: engine.url,
      baseModel: engine.baseModel,
      versions: ['backtalk-v0'],
      pools: ['serving'],
    });
  });

  it('loads the whole load set before it is ready', async () => {
    const { manifestDigest } = await makeVersion('backtalk-v1');
    await setLoad([
      { version: 'backtalk-v0', manifestDigest: '' },
      { version: 'backtalk-v1', manifestDigest },
    ]);
    await startReady();
    expect(engine.adapters.names).toEqual(['backtalk-v1']);
    expect(loader.state.current.versions).toEqual(['backtalk-v0', 'backtalk-v1']);
  });

  it('lets an engine serve that gives no token ids, or scores that are not its own, and says what it lacks', async () => {
    engine.settings.faults = { lie: 'no_ids' };
    await startReady();
    expect(loader.state.current.capabilities).not.toContain('token_ids');
    await loader.stop();
    engine.settings.faults = { lie: 'wrong_scores' };
    await startReady();
    expect(loader.state.current.capabilities).toContain('prompt_logprobs');
    expect(loader.state.current.capabilities).not.toContain('true_logprobs');
  });

  it('finds the logprobs of an honest engine true', async () => {
    await startReady();
    expect(loader.state.current.capabilities).toContain('true_logprobs');
  });

  it.each([
    ['model', { BACKTALK_BASE_MODEL: 'another-model' }, /another-model/],
    ['context', { BACKTALK_CONTEXT_MIN: '9000' }, /8192 tokens.*9000/],
  ])('refuses an engine whose %s does not fit the policy, and says so in its lease', async (_, settings, reason) => {
    await start(settings);
    const lease = await until(async () => {
      const found = await readLease();
      return found?.engine?.reason.startsWith('refused') === true && found;
    });
    expect(lease.engine).toMatchObject({ ready: false, reason: expect.stringMatching(reason) as string });
    expect(engine.adapters.names).toEqual([]);
  });

  it('refuses an engine that takes no adapter of the policy’s rank, and leaves nothing behind where it does', async () => {
    await writeFile(directory.join('config.json'), JSON.stringify(smallModel));
    const settings = { BACKTALK_MODEL_DIR: directory.path, BACKTALK_LORA_RANK: '128' };
    await start(settings);
    await until(() => loader.state.current.reason.includes('rank 128'));
    await loader.stop();
    engine.settings.rankMax = 128;
    await startReady(settings);
    expect(engine.adapters.names).toEqual([]);
    expect((await readdir(directory.join('adapters'))).filter((name) => name.includes('rank-trial'))).toEqual([]);
  });

  it('looks again at an engine that it refused, or that could not be tried', async () => {
    await writeFile(directory.join('config.json'), JSON.stringify(smallModel));
    engine.settings.faults = { loadStatus: 500 };
    engine.settings.rankMax = 64;
    await start({ BACKTALK_MODEL_DIR: directory.path, BACKTALK_LORA_RANK: '128' });
    await until(() => engine.counts.loadsRefused > 1, { what: 'two tries' });
    expect(loader.state.current).toMatchObject({ ready: false });
    engine.settings.faults = {};
    await until(() => loader.state.current.reason.includes('rank 128'));
    engine.settings.rankMax = 128;
    await ready();
  });

  it('asks nothing of an engine that only judges, and gives it no versions', async () => {
    const { manifestDigest } = await makeVersion('backtalk-v1');
    await setLoad([{ version: 'backtalk-v1', manifestDigest }]);
    await start({ BACKTALK_ENGINE_POOLS: 'judge', BACKTALK_BASE_MODEL: 'another-model' });
    await ready();
    expect(loader.state.current).toMatchObject({ versions: [], pools: ['judge'] });
    expect(engine.adapters.names).toEqual([]);
  });
});

describe('Prepare', () => {
  it('loads and warms up a version, and a repeat does nothing', async () => {
    await startReady();
    const { manifestDigest } = await makeVersion('backtalk-v1');
    const request = { policy, version: 'backtalk-v1', manifestDigest };
    expect(await client.prepare(request, call)).toMatchObject({ already: false });
    expect(await client.prepare(request, call)).toMatchObject({ already: true });
    expect(engine.counts.loads).toEqual(['backtalk-v1']);
    expect(engine.counts.byModel['backtalk-v1']).toBe(1);
    expect(loader.state.current.versions).toContain('backtalk-v1');
  });

  it('prepares nothing for the base', async () => {
    await startReady();
    const request = { policy, version: 'backtalk-v0', manifestDigest: '' };
    expect(await client.prepare(request, call)).toMatchObject({ already: true });
  });

  async function refusal(version: string, manifestDigest: string): Promise<unknown> {
    await startReady();
    const outcome = client.prepare({ policy, version, manifestDigest }, call);
    const error: unknown = await outcome.catch((thrown: unknown) => thrown);
    expect(engine.adapters.names).toEqual([]);
    expect((await readdir(directory.join('adapters'))).length).toBe(0);
    return error;
  }

  const blobPath = (digest: string) => directory.join('blobs', digest.slice(0, 2), digest);

  it('refuses one flipped byte of the weights', async () => {
    const { manifest, manifestDigest } = await makeVersion('backtalk-v1');
    const path = blobPath(manifest.adapter[0]?.digest ?? '');
    const bytes = await readFile(path);
    bytes[bytes.length - 1] = (bytes[bytes.length - 1] ?? 0) ^ 1;
    await writeFile(path, bytes);
    expect(await refusal('backtalk-v1', manifestDigest)).toMatchObject({
      code: 'weights_digest_mismatch',
      retry: 'never',
    });
  });

  it('refuses a manifest that was changed', async () => {
    const { manifestDigest } = await makeVersion('backtalk-v1');
    await appendFile(blobPath(manifestDigest), 'x');
    expect(await refusal('backtalk-v1', manifestDigest)).toMatchObject({ code: 'weights_digest_mismatch' });
  });

  it('refuses truncated weights, though their digest is right', async () => {
    const { manifest } = await makeVersion('backtalk-v1');
    const whole = await blobs.get(manifest.adapter[0]?.digest ?? '');
    const cut = whole.slice(0, -4);
    const { putManifest } = changedManifest(manifest);
    const digest = await putManifest({ digest: await blobs.put(cut), bytes: cut.byteLength });
    expect(await refusal('backtalk-v1', digest)).toMatchObject({ code: 'weights_truncated', retry: 'never' });
  });

  it('refuses weights of another rank than the manifest says', async () => {
    const { manifest } = await makeVersion('backtalk-v1');
    const { putManifest } = changedManifest({ ...manifest, loraRank: 4, loraAlpha: 16 });
    const digest = await putManifest({});
    expect(await refusal('backtalk-v1', digest)).toMatchObject({ code: 'weights_shape_mismatch', retry: 'never' });
  });

  it('refuses weights for another base', async () => {
    const { manifestDigest } = await makeVersion('backtalk-v1', { baseModel: 'another' });
    expect(await refusal('backtalk-v1', manifestDigest)).toMatchObject({ code: 'weights_manifest_invalid' });
  });

  it('says that missing weights may come later', async () => {
    const { manifest, manifestDigest } = await makeVersion('backtalk-v1');
    await blobs.delete(manifest.adapter[0]?.digest ?? '');
    expect(await refusal('backtalk-v1', manifestDigest)).toMatchObject({ code: 'weights_missing', retry: 'later' });
  });

  it('refuses other weights under a name that is taken', async () => {
    await startReady();
    const first = await makeVersion('backtalk-v1');
    const second = await makeVersion('backtalk-v1', { batch: 2 });
    await client.prepare({ policy, version: 'backtalk-v1', manifestDigest: first.manifestDigest }, call);
    await expect(
      client.prepare({ policy, version: 'backtalk-v1', manifestDigest: second.manifestDigest }, call),
    ).rejects.toMatchObject({ code: 'weights_version_conflict' });
  });

  it('takes no adapter for its own that another loaded under a version’s name', async () => {
    await startReady();
    const [one, nine] = [await makeVersion('backtalk-v1'), await makeVersion('backtalk-v9', { batch: 9 })];
    await client.prepare({ policy, version: 'backtalk-v9', manifestDigest: nine.manifestDigest }, call);
    const others = engine.adapters.pathOf('backtalk-v9') ?? '';
    await engine.adapters.load('backtalk-v1', others, { adaptersMax: 9, rankMax: 64 });
    await client.prepare({ policy, version: 'backtalk-v1', manifestDigest: one.manifestDigest }, call);
    expect(engine.counts.unloads).toContain('backtalk-v1');
    expect(engine.adapters.pathOf('backtalk-v1')).toContain(`backtalk-v1-${one.manifestDigest.slice(0, 16)}`);
  });

  it.each(['../evil', 'backtalk-v1/../../evil', 'other-v1', 'backtalk-v01', ''])(
    'writes nothing for %j, which is no name of a version, whatever a manifest says',
    async (version) => {
      const { manifestDigest } = await makeVersion(version, { policy });
      expect(await refusal(version, manifestDigest)).toMatchObject({ code: 'weights_version_invalid', retry: 'never' });
      expect((await readdir(directory.path)).sort()).toEqual(['adapters', 'blobs']);
    },
  );

  it('leaves nothing behind when the engine refuses', async () => {
    await startReady();
    const { manifestDigest } = await makeVersion('backtalk-v1');
    const prepare = () => client.prepare({ policy, version: 'backtalk-v1', manifestDigest }, call);
    engine.settings.rankMax = 4;
    await expect(prepare()).rejects.toMatchObject({ code: 'adapter_refused', retry: 'never' });
    engine.settings.rankMax = 64;
    engine.settings.faults = { loadStatus: 500 };
    await expect(prepare()).rejects.toMatchObject({ code: 'engine_failed', retry: 'later' });
    expect(loader.state.current.versions).toEqual(['backtalk-v0']);
    engine.settings.faults = {};
    await prepare();
    expect(loader.state.current.versions).toEqual(['backtalk-v0', 'backtalk-v1']);
  });

  function changedManifest(manifest: Awaited<ReturnType<typeof makeVersion>>['manifest']) {
    return {
      putManifest: async (weights: { digest?: string; bytes?: number }) => {
        const { WeightsManifest } = await import('@backtalk/proto/weights');
        const [first, ...rest] = manifest.adapter;
        const adapter = first === undefined ? rest : [{ ...first, ...weights }, ...rest];
        return blobs.put(WeightsManifest.encode({ ...manifest, adapter }).finish());
      },
    };
  }
});

describe('upkeep', () => {
  it('follows the load set: loads what is missing, unloads after the grace what is not in it', async () => {
    const one = await makeVersion('backtalk-v1');
    const two = await makeVersion('backtalk-v2');
    await startReady({ BACKTALK_RETIRE_GRACE: '0s' });
    await setLoad([{ version: 'backtalk-v1', manifestDigest: one.manifestDigest }]);
    await until(() => engine.adapters.names.includes('backtalk-v1'));
    await setLoad([{ version: 'backtalk-v2', manifestDigest: two.manifestDigest }]);
    await until(() => engine.adapters.names.join() === 'backtalk-v2');
    expect(engine.counts.unloads).toEqual(['backtalk-v1']);
    await until(async () => (await readdir(directory.join('adapters'))).length === 1);
  });

  it('loads again what an engine lost when it restarted, and is not ready until it has', async () => {
    const { manifestDigest } = await makeVersion('backtalk-v1');
    await setLoad([{ version: 'backtalk-v1', manifestDigest }]);
    await startReady();
    const pictures: EngineLease[] = [];
    loader.state.onChange((picture) => pictures.push(picture));
    await engine.restart();
    await until(() => engine.counts.loads.length === 2 && loader.state.current.ready);
    expect(pictures.some(({ ready: isReady }) => !isReady)).toBe(true);
    for (const picture of pictures) expect(picture.ready && !picture.versions.includes('backtalk-v1')).toBe(false);
  });

  it('checks and warms up again what an earlier loader left on the engine', async () => {
    const { manifestDigest } = await makeVersion('backtalk-v1');
    await setLoad([{ version: 'backtalk-v1', manifestDigest }]);
    await startReady();
    await loader.stop();
    client.close();
    await startReady();
    expect(loader.state.current.versions).toEqual(['backtalk-v0', 'backtalk-v1']);
    expect(engine.counts.loads).toEqual(['backtalk-v1']);
    expect(engine.counts.byModel['backtalk-v1']).toBe(2);
  });

  it('retires a version at once, and a repeat does nothing', async () => {
    await startReady();
    const { manifestDigest } = await makeVersion('backtalk-v1');
    await client.prepare({ policy, version: 'backtalk-v1', manifestDigest }, call);
    expect(await client.retire({ policy, version: 'backtalk-v1' }, call)).toEqual({ already: false });
    expect(await client.retire({ policy, version: 'backtalk-v1' }, call)).toEqual({ already: true });
    expect(engine.adapters.names).toEqual([]);
  });

  it('keeps a version that the load set names, whoever asks to retire it', async () => {
    await setLoad([{ version: 'backtalk-v1', manifestDigest: (await makeVersion('backtalk-v1')).manifestDigest }]);
    await startReady();
    const retiring = client.retire({ policy, version: 'backtalk-v1', fence: 9 }, call);
    await expect(retiring).rejects.toMatchObject({ code: 'weights_version_wanted', retry: 'later' });
    expect(engine.adapters.names).toEqual(['backtalk-v1']);
  });

  it('takes nothing off for a publisher that another one has followed', async () => {
    await startReady();
    const { manifestDigest } = await makeVersion('backtalk-v1');
    await client.prepare({ policy, version: 'backtalk-v1', manifestDigest }, call);
    await client.retire({ policy, version: 'backtalk-v2', fence: 8 }, call);
    const retire = (fence: number) => client.retire({ policy, version: 'backtalk-v1', fence }, call);
    await expect(retire(7)).rejects.toMatchObject({ code: 'fence_passed', retry: 'never' });
    expect(engine.adapters.names).toEqual(['backtalk-v1']);
    expect(await retire(8)).toEqual({ already: false });
  });

  it('sends watchers what it holds, now and at every change', async () => {
    await startReady();
    const { manifestDigest } = await makeVersion('backtalk-v1');
    const seen: string[][] = [];
    const stopping = new AbortController();
    const watching = (async () => {
      for await (const { engine: picture } of client.watch({}, { deadlineMs: 120_000, signal: stopping.signal }))
        seen.push(picture?.versions ?? []);
    })().catch(() => undefined);
    await until(() => seen.length > 0);
    await client.prepare({ policy, version: 'backtalk-v1', manifestDigest }, call);
    await until(() => seen.at(-1)?.includes('backtalk-v1') === true);
    stopping.abort();
    await watching;
  });

  it('refuses calls for another policy', async () => {
    await start();
    const retiring = client.retire({ policy: 'other', version: 'other-v1' }, call);
    await expect(retiring).rejects.toMatchObject({ code: 'policy_unknown' });
  });
});
