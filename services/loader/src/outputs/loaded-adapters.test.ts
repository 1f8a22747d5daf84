import { createEngineClient, type EngineClient } from '@backtalk/dialects';
import { putFakeVersion, startFakeEngine, type FakeEngine } from '@backtalk/dialects/testing';
import { folderBlobStore, Metrics, systemClock, type BlobStore } from '@backtalk/kit';
import { silentLogger, TemporaryDirectory, until } from '@backtalk/kit/testing';
import { readdirSync } from 'node:fs';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';

import { createEvents } from '../events.js';
import { LoadedAdapters } from './loaded-adapters.js';
import { WeightsFiles } from './weights-files.js';

const version = 'backtalk-v1';
const deadlines = { deadlineMs: 10_000 };
let directory: TemporaryDirectory;
let blobs: BlobStore;
let engine: FakeEngine;
let client: EngineClient;

beforeEach(async () => {
  directory = new TemporaryDirectory('adapters');
  blobs = folderBlobStore(directory.join('blobs'));
  engine = await startFakeEngine();
  client = createEngineClient({ url: engine.url, dialect: 'vllm', apiKey: '' });
});

afterEach(async () => {
  await client.close();
  await engine.stop();
  directory.remove();
});

/** A loader's life begins: it looks what the engine holds. */
async function lifeOfLoader(): Promise<LoadedAdapters> {
  const files = new WeightsFiles(blobs, directory.join('adapters'), undefined);
  await files.start();
  const events = createEvents(silentLogger, new Metrics('loader'));
  const adapters = new LoadedAdapters(client, files, { clock: systemClock, events, ...deadlines }, () => undefined);
  await adapters.compare(
    (name) => name.startsWith('backtalk-v'),
    () => false,
    deadlines,
  );
  return adapters;
}

const folders = () => readdirSync(directory.join('adapters'));

async function wantedVersion() {
  const { manifestDigest } = await putFakeVersion({ blobs, version });
  return { policy: 'backtalk', version, manifestDigest };
}

describe('what an earlier loader left on the engine', () => {
  it('a version of an earlier loader stays when the engine is busy, or the loader ends, as it is warmed up', async () => {
    const wanted = await wantedVersion();
    await (await lifeOfLoader()).prepare(wanted, engine.baseModel);
    const next = await lifeOfLoader();
    engine.settings.faults = { busy: true };
    await expect(next.prepare(wanted, engine.baseModel)).rejects.toMatchObject({ code: 'engine_overloaded' });
    engine.settings.faults = {};
    engine.settings.firstTokenMs = 60_000;
    const ending = new AbortController();
    const prepared = next.prepare(wanted, engine.baseModel, ending.signal);
    ending.abort();
    await expect(prepared).rejects.toThrow();
    expect(engine.adapters.names).toEqual([version]);
    engine.settings.firstTokenMs = 0;
    await next.prepare(wanted, engine.baseModel);
    expect(engine.counts.loads).toEqual([version]);
  });

  it('a version of an earlier loader is taken off with its folder, though its manifest is not known', async () => {
    await (await lifeOfLoader()).prepare(await wantedVersion(), engine.baseModel);
    expect(folders()).toHaveLength(1);
    expect(await (await lifeOfLoader()).retire(version)).toBe(true);
    expect(folders()).toEqual([]);
  });
});

it('a version that is wanted again when its turn to be taken off comes stays', async () => {
  const adapters = await lifeOfLoader();
  await adapters.prepare(await wantedVersion(), engine.baseModel);
  let isWanted = false;
  const turn = adapters.prepare(await wantedVersion(), engine.baseModel);
  const retired = adapters.retire(version, () => isWanted);
  isWanted = true;
  await turn;
  await expect(retired).rejects.toMatchObject({ code: 'weights_version_wanted' });
  expect([engine.adapters.names, adapters.versions]).toEqual([[version], [version]]);
});

it('a version that the engine fails to unload is taken off where the engine lists it no more, and stays where it does', async () => {
  const adapters = await lifeOfLoader();
  await adapters.prepare(await wantedVersion(), engine.baseModel);
  engine.settings.faults = { unloadStatus: 500 };
  await expect(adapters.retire(version)).rejects.toMatchObject({ code: 'engine_failed' });
  expect([adapters.versions, adapters.unchecked, folders().length]).toEqual([[], [version], 1]);
  engine.adapters.forget();
  expect(await adapters.retire(version)).toBe(true);
  expect([adapters.unchecked, folders()]).toEqual([[], []]);
});

describe('folders on the engine’s disk', () => {
  it('none is left of a version that the engine refuses, or that it has lost and nobody wants', async () => {
    const adapters = await lifeOfLoader();
    const wanted = await wantedVersion();
    engine.settings.rankMax = 4;
    await expect(adapters.prepare(wanted, engine.baseModel)).rejects.toMatchObject({ code: 'adapter_refused' });
    expect(folders()).toEqual([]);
    engine.settings.rankMax = 64;
    await adapters.prepare(wanted, engine.baseModel);
    await engine.restart();
    let isWanted = true;
    // The connection that was kept is closed first.
    const look = () =>
      adapters
        .compare(
          () => true,
          () => isWanted,
          deadlines,
        )
        .catch(() => undefined);
    expect(await until(look, { what: 'The list of an engine that came back' })).toEqual([version]);
    expect(folders()).toHaveLength(1);
    isWanted = false;
    expect(await look()).toEqual([]);
    expect(folders()).toEqual([]);
  });
});
