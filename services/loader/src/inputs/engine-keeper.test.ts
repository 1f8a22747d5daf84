import { rmSync } from 'node:fs';
import { createEngineClient } from '@backtalk/dialects';
import { putFakeVersion, startFakeEngine, type FakeEngine } from '@backtalk/dialects/testing';
import {
  BacktalkError,
  folderBlobStore,
  Metrics,
  readConfig,
  systemClock,
  type BlobStore,
  type Clock,
} from '@backtalk/kit';
import { FakeClock, silentLogger, TemporaryDirectory, until } from '@backtalk/kit/testing';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { loaderSettings } from '../config.js';
import { createEvents } from '../events.js';
import { EngineState } from '../outputs/engine-state.js';
import { LoadedAdapters } from '../outputs/loaded-adapters.js';
import { RankTrial } from '../outputs/rank-trial.js';
import { WeightsFiles } from '../outputs/weights-files.js';
import { EngineKeeper } from './engine-keeper.js';
import { loaderCalls } from './loader-calls.js';

const digest = 'a'.repeat(64);
const wanted = { policy: 'backtalk', version: 'backtalk-v1', manifestDigest: digest };

const smallBase = { layers: 1, widths: { o_proj: [8, 8] as const } };

let directory: TemporaryDirectory;
let fakeEngine: FakeEngine;
const failures: unknown[] = [];

beforeEach(async () => {
  failures.length = 0;
  directory = new TemporaryDirectory('keeper');
  fakeEngine = await startFakeEngine();
});

afterEach(async () => {
  await fakeEngine.stop();
  directory.remove();
});

/** All that keeps an engine, over a blob store of the test's choice. */
function partsOver(
  blobs: BlobStore,
  more: Readonly<Record<string, string>> = {},
  clock: Clock = systemClock,
  dialect: 'openai' | 'vllm' = 'vllm',
) {
  const config = readConfig(loaderSettings, {
    BACKTALK_HEALTH_ADDRESS: '127.0.0.1:0',
    BACKTALK_ENGINE_URL: fakeEngine.url,
    BACKTALK_ENGINE_CHECK: '20ms',
    ...more,
  });
  const events = createEvents(silentLogger, new Metrics('loader'));
  const engine = createEngineClient({ dialect, url: fakeEngine.url, apiKey: '' });
  const files = new WeightsFiles(blobs, directory.join('adapters'), undefined);
  const options = { clock, events, deadlineMs: 10_000 };
  const adapters = new LoadedAdapters(engine, files, options, () => undefined);
  const state = new EngineState({
    url: fakeEngine.url,
    dialect: 'vllm',
    pools: ['serving'],
    baseModel: '',
    maxContext: 0,
    versions: [],
    ready: false,
    reason: '',
    capabilities: [],
  });
  const rankTrial = new RankTrial(engine, config.loraRank, directory.path, smallBase, events);
  const fail = (error: unknown) => failures.push(error);
  const keeper = new EngineKeeper(config, { engine, adapters, rankTrial, state, clock, events, fail });
  return { adapters, keeper, engine, state };
}

describe('EngineKeeper', () => {
  it.each(['vllm', 'openai'] as const)(
    'says of an engine (%s) that it refuses the key, until it takes it',
    async (dialect) => {
      await fakeEngine.stop();
      fakeEngine = await startFakeEngine({ apiKey: 'sk-another' });
      const { keeper, state } = partsOver(folderBlobStore(directory.join('blobs')), {}, systemClock, dialect);
      keeper.start();
      await until(() => (/refuses the key/.test(state.current.reason) ? true : undefined), { what: 'the reason' });
      expect(state.current.ready).toBe(false);
      await keeper.stop();
    },
  );

  it('ends the service through `fail` when weights meet an error that no waiting mends', async () => {
    const gone = () => new BacktalkError({ code: 'stream_missing', retry: 'stop', message: 'The store is gone.' });
    const blobs = Object.assign(folderBlobStore(directory.join('blobs')), { get: () => Promise.reject(gone()) });
    const { keeper, engine } = partsOver(blobs);
    keeper.follow('backtalk', [wanted]);
    keeper.start();
    await until(() => failures.length > 0, { what: 'the failure' });
    await keeper.stop();
    await engine.close();
    expect(failures[0]).toMatchObject({ code: 'stream_missing' });
  });
});

describe('an engine that unloads what was asked least recently where it has no place left', () => {
  beforeEach(() => {
    Object.assign(fakeEngine.settings, { evicts: true, adaptersMax: 2 });
  });

  async function versionsIn(blobs: BlobStore, ...names: string[]) {
    const made = names.map(async (version) => {
      const { manifestDigest } = await putFakeVersion({ blobs, version });
      return { version, manifestDigest };
    });
    return Promise.all(made);
  }

  it('an engine that evicts a version serves on with the others, and is given it again from the folder that is there', async () => {
    const blobs = folderBlobStore(directory.join('blobs'));
    const [one, two] = await versionsIn(blobs, 'backtalk-v1', 'backtalk-v2');
    const { keeper, engine, state } = partsOver(blobs);
    keeper.follow(
      'backtalk',
      [one, two].filter((version) => version !== undefined),
    );
    keeper.start();
    await until(() => state.current.ready, { what: 'the engine to be ready' });
    const seen: boolean[] = [];
    state.onChange(({ ready }) => seen.push(ready));
    rmSync(directory.join('blobs'), { recursive: true });
    const others = fakeEngine.adapters.pathOf('backtalk-v1') ?? '';
    await fakeEngine.adapters.load('of-another', others, fakeEngine.settings);
    expect(fakeEngine.adapters.names).toEqual(['backtalk-v2', 'of-another']);
    await until(() => !state.current.versions.includes('backtalk-v1'), { what: 'The lease to name it no more' });
    await until(() => state.current.versions.includes('backtalk-v1'), { what: 'The version to be there again' });
    expect(fakeEngine.adapters.names).toContain('backtalk-v1');
    expect(seen).not.toContain(false);
    await keeper.stop();
    await engine.close();
  });

  it('an engine with too few places is not given all the time what it has no place for', async () => {
    const blobs = folderBlobStore(directory.join('blobs'));
    const clock = new FakeClock();
    const wanted = await versionsIn(blobs, 'backtalk-v1', 'backtalk-v2', 'backtalk-v3');
    const { keeper, engine, state } = partsOver(blobs, { BACKTALK_ENGINE_CHECK: '1s' }, clock);
    keeper.follow('backtalk', wanted);
    keeper.start();
    const startMs = clock.now();
    await until(async () => {
      await clock.advance(1_000);
      return clock.now() > startMs + 180_000;
    });
    await keeper.stop();
    await engine.close();
    // Three at first; then each of them after 1, 2, 4 … 30 seconds.
    expect(fakeEngine.counts.loads.length).toBeGreaterThan(4);
    expect(fakeEngine.counts.loads.length).toBeLessThan(50);
    expect(state.current.ready).toBe(true);
  });
});

describe('an engine that fails to unload', () => {
  const unloadFails = { unloadStatus: 500 };

  it('an engine that fails to unload is asked a few times, loads what it is to hold, and is asked again when the load set changes', async () => {
    const blobs = folderBlobStore(directory.join('blobs'));
    const clock = new FakeClock();
    const more = { BACKTALK_RETIRE_GRACE: '0s', BACKTALK_ENGINE_CHECK: '1s' };
    const { keeper, engine } = partsOver(blobs, more, clock);
    const version = async (name: string) => {
      const { manifestDigest } = await putFakeVersion({ blobs, version: name });
      return { version: name, manifestDigest };
    };
    const [one, two] = [await version('backtalk-v1'), await version('backtalk-v2')];
    const { counts, adapters } = fakeEngine;
    /** Rounds go on until it is so. */
    const inTime = (isSo: () => boolean) =>
      until(async () => {
        await clock.advance(1_000);
        return isSo();
      });
    keeper.follow('backtalk', [one]);
    keeper.start();
    await inTime(() => adapters.names.includes('backtalk-v1'));
    fakeEngine.settings.faults = unloadFails;
    keeper.follow('backtalk', [two]);
    await inTime(() => adapters.names.includes('backtalk-v2') && counts.unloadsRefused > 0);
    const startMs = clock.now();
    await inTime(() => clock.now() > startMs + 180_000);
    expect(counts.unloadsRefused).toBe(8);
    fakeEngine.settings.faults = {};
    keeper.follow('backtalk', [two]);
    await inTime(() => adapters.names.join() === 'backtalk-v2');
    await keeper.stop();
    await engine.close();
  });

  it('an engine that fails to unload the trial adapter takes adapters, is ready, and is tried once', async () => {
    fakeEngine.settings.faults = unloadFails;
    const { keeper, engine, state } = partsOver(folderBlobStore(directory.join('blobs')), { BACKTALK_LORA_RANK: '8' });
    keeper.follow('backtalk', []);
    keeper.start();
    await until(() => state.current.ready, { what: 'the engine to be ready' });
    await keeper.stop();
    await engine.close();
    expect(fakeEngine.counts.loads).toHaveLength(1);
  });
});

describe('several policies on one engine', () => {
  const policies = { BACKTALK_POLICIES: 'ada,ben', BACKTALK_RETIRE_GRACE: '0s' };

  it('holds the load sets of all of them, and unloads nothing of one whose load set is not known', async () => {
    const blobs = folderBlobStore(directory.join('blobs'));
    const { keeper, engine, state } = partsOver(blobs, policies);
    const loaded = async (policy: string, version: string) => {
      const { manifestDigest } = await putFakeVersion({ blobs, version, policy });
      return { version, manifestDigest };
    };
    const [ada, ben] = [await loaded('ada', 'ada-v1'), await loaded('ben', 'ben-v1')];
    keeper.follow('ada', [ada]);
    keeper.follow('ben', [ben]);
    keeper.start();
    const holds = (...names: string[]) =>
      until(() => fakeEngine.adapters.names.toSorted().join() === names.join(), {
        what: `${names.join()} on the engine`,
      });
    await holds('ada-v1', 'ben-v1');
    keeper.follow('ben', undefined);
    keeper.follow('ada', []);
    await holds('ben-v1');
    expect(keeper.mayRetire('ada-v1')).toBe(true);
    expect(keeper.mayRetire('ben-v1')).toBe(false);
    keeper.follow('ben', []);
    await holds();
    expect(state.current).toMatchObject({ ready: true });
    await keeper.stop();
    await engine.close();
  });

  it('refuses to unload a version under the name of another policy, and fences each policy alone', async () => {
    const { adapters, state, engine } = partsOver(folderBlobStore(directory.join('blobs')));
    const calls = loaderCalls(['ada', 'ben'], adapters, state, { baseModel: 'base', mayRetire: () => true });
    const retire = (policy: string, version: string, fence: number) =>
      calls.retire({ policy, version, fence }, {} as Parameters<typeof calls.retire>[1]);
    await expect(retire('ada', 'ben-v1', 9)).rejects.toMatchObject({ code: 'weights_version_invalid' });
    expect(await retire('ada', 'ada-v1', 9)).toEqual({ already: true });
    expect(await retire('ben', 'ben-v1', 3)).toEqual({ already: true });
    await expect(retire('ada', 'ada-v1', 8)).rejects.toMatchObject({ code: 'fence_passed' });
    await engine.close();
  });
});

describe('LoadedAdapters', () => {
  it('refuses work beyond its bound while one piece runs, and takes it again afterwards', async () => {
    let open: (bytes: Uint8Array) => void = () => undefined;
    const bytes = new Promise<Uint8Array>((resolve) => (open = resolve));
    const { adapters, engine } = partsOver(
      Object.assign(folderBlobStore(directory.join('blobs')), { get: () => bytes }),
    );
    const first = adapters.prepare(wanted, 'base').catch((error: unknown) => error);
    const waiting = Array.from({ length: 31 }, () => adapters.retire('backtalk-v9'));
    await expect(adapters.retire('backtalk-v9')).rejects.toMatchObject({ code: 'loader_busy', retry: 'later' });
    open(new Uint8Array([255]));
    expect(await first).toMatchObject({ code: 'weights_manifest_invalid' });
    expect(await Promise.all(waiting)).toEqual(Array.from({ length: 31 }, () => false));
    expect(await adapters.retire('backtalk-v9')).toBe(false);
    await engine.close();
  });
});
