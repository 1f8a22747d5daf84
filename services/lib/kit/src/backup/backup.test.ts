import { mkdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { TurnOpened } from '@backtalk/proto/facts';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { BlobStore } from '../blobs/blob-store.js';
import { folderBlobStore } from '../blobs/folder-blob-store.js';
import { consumeFacts } from '../facts/consumer.js';
import { sweepPayloads } from '../facts/payloads.js';
import { FactPublisher } from '../facts/publisher.js';
import { FactReader } from '../facts/reader.js';
import { newTurnId } from '../identity/ids.js';
import { Metrics } from '../telemetry/metrics.js';
import { collect } from '../testing/collect.js';
import { startNats, type TestNats } from '../testing/nats-server.js';
import { silentLogger } from '../testing/silent-logger.js';
import { TemporaryDirectory } from '../testing/temporary-directory.js';
import { until } from '../testing/until.js';
import { backUp, restoreBackup } from './backup.js';
import { readManifest } from './manifest.js';

const person = { tenant: 'tenanthash', user: 'userhash' };

describe('a backup', () => {
  let nats: TestNats;
  let other: TestNats;
  const folders = new TemporaryDirectory('backup');

  beforeAll(async () => {
    [nats, other] = await Promise.all([startNats(), startNats({ streams: false })]);
  });
  afterAll(async () => {
    await Promise.all([nats.stop(), other.stop()]);
    folders.remove();
  });

  async function consumer(of: TestNats, seen: string[], handles: number) {
    const broker = await of.connect('collector');
    return consumeFacts({
      broker,
      service: 'collector',
      facts: ['turnOpened'],
      concurrency: 1,
      ackWaitMs: 1_000,
      logger: silentLogger,
      metrics: new Metrics('collector'),
      handlers: {
        turnOpened: async ({ message }) => {
          if (seen.length >= handles) await new Promise(() => undefined);
          seen.push(message.turn);
        },
      },
    });
  }

  it('a backup holds every fact stored before it, with its sequence, and how far each consumer has come', async () => {
    const publisher = new FactPublisher(await nats.connect('gateway'));
    const turns = Array.from({ length: 300 }, () => newTurnId());
    const publish = (turn: string) => publisher.publish('turnOpened', TurnOpened.fromPartial({ ...person, turn }));
    for (const turn of turns) await publish(turn);
    const before: string[] = [];
    const first = await consumer(nats, before, 200);
    await first.start();
    await until(async () => (await first.position('turnOpened')).settledSequence === 200);
    const blobs = folderBlobStore(folders.join('blobs'));
    const digest = await blobs.put(Buffer.from('an adapter'));

    // The log goes on while it is copied.
    const later = Promise.all(Array.from({ length: 50 }, () => publish(newTurnId())));
    const admin = await nats.connect('admin');
    const manifest = await backUp({ broker: admin, blobs, folder: folders.join('copy') });
    await later;
    expect(manifest).toMatchObject({ blobs: 1 });
    await first.stop(0);

    const target = await other.connect('admin');
    const restored = folderBlobStore(folders.join('restored'));
    await restoreBackup({ broker: target, blobs: restored, folder: folders.join('copy') });
    expect(Buffer.from(await restored.get(digest)).toString()).toBe('an adapter');
    const reader = new FactReader(target);
    for (const [at, turn] of turns.entries()) {
      const fact = await reader.last('turnOpened', { turn });
      expect(fact?.sequence).toBe(at + 1);
    }
    const after: string[] = [];
    const second = await consumer(other, after, 1_000);
    await second.start();
    await until(async () => (await second.position('turnOpened')).settledSequence >= 300);
    expect(after.slice(0, 100)).toEqual(turns.slice(200));
    expect(before).toEqual(turns.slice(0, 200));
    await second.stop();
  });

  it('a backup is not restored over an installation that has run, which is refused in one line', async () => {
    const broker = await nats.connect('admin');
    const blobs = folderBlobStore(folders.join('blobs'));
    await expect(restoreBackup({ broker, blobs, folder: folders.join('copy') })).rejects.toThrow(
      /^Stream \w+ exists here already: restore into an installation that has never run\.$/,
    );
  });

  it('a backup gives a stream back as this installation plans it, whatever its manifest says', async () => {
    const empty = await startNats({ streams: false });
    try {
      const file = folders.join('copy', 'manifest.json');
      const text = readFileSync(file, 'utf8');
      writeFileSync(file, text.replaceAll('"config": {', '"config": { "mirror": { "name": "EVIL" }, "max_age": 1,'));
      const broker = await empty.connect('admin');
      const blobs = folderBlobStore(folders.join('planned'));
      const bounds = { turnsBytesMax: 10_000_000 };
      const restored = await restoreBackup({ broker, blobs, folder: folders.join('copy'), bounds });
      writeFileSync(file, text);
      const { config, state } = await broker.jsm.streams.info('TURNS');
      expect(config).toMatchObject({ max_bytes: 10_000_000, max_age: 30 * 24 * 3_600_000_000_000 });
      expect(config.mirror).toBeUndefined();
      expect(state.messages).toBe(restored.streams.find(({ stream }) => stream === 'TURNS')?.messages);
    } finally {
      await empty.stop();
    }
  });

  it('a backup is refused when one byte of it is another', async () => {
    const empty = await startNats({ streams: false });
    try {
      const file = join(folders.path, 'copy', 'streams', 'TURNS.snapshot');
      const bytes = readFileSync(file);
      bytes[bytes.length >> 1] = (bytes[bytes.length >> 1] ?? 0) ^ 1;
      writeFileSync(file, bytes);
      const broker = await empty.connect('admin');
      const blobs = folderBlobStore(folders.join('unused'));
      await expect(restoreBackup({ broker, blobs, folder: folders.join('copy') })).rejects.toMatchObject({
        code: 'backup_unreadable',
      });
      expect(await broker.jsm.streams.names().next()).toEqual([]);
    } finally {
      await empty.stop();
    }
  });

  interface Forged {
    readonly files?: readonly string[];
    readonly stream?: string;
    readonly file?: string;
  }

  it.each<[string, Forged]>([
    ['a file beside it', { files: ['../evil'] }],
    ['a file that no backup has', { files: ['evil.json'] }],
    ['a snapshot elsewhere', { file: '../../etc/passwd' }],
    ['a stream that is none of ours', { stream: 'ELSEWHERE', file: 'streams/ELSEWHERE.snapshot' }],
  ])('a backup whose manifest names %s is refused', (_what, { files = [], ...first }: Forged) => {
    const folder = folders.join(`forged-${newTurnId()}`);
    const manifest = readManifest(folders.join('copy'));
    const [stream, ...streams] = manifest.streams;
    mkdirSync(folder);
    const forged = { ...manifest, files, streams: [{ ...stream, ...first }, ...streams] };
    writeFileSync(join(folder, 'manifest.json'), JSON.stringify(forged));
    expect(() => readManifest(folder)).toThrow('its manifest.json is of another format');
  });

  it('a backup is its owner’s alone, also in a folder that others could read', async () => {
    const folder = folders.join('open');
    mkdirSync(folder, { mode: 0o755 });
    const secrets = folders.join('secrets.json');
    writeFileSync(secrets, '{}', { mode: 0o644 });
    const files = [{ name: 'secrets.json', path: secrets }] as const;
    await backUp({ broker: await nats.connect('admin'), blobs: folderBlobStore(folders.join('none')), folder, files });
    const modes = ['.', 'manifest.json', 'streams/TURNS.snapshot', 'files/secrets.json'].map(
      (name) => statSync(join(folder, name)).mode & 0o777,
    );
    expect(modes).toEqual([0o700, 0o600, 0o600, 0o600]);
  });

  it('a backup says what its installation serves, where that is known', async () => {
    const served = { baseModel: 'Qwen3-4B', policies: ['ada', 'ben'], quantization: 'nf4' } as const;
    const start = { broker: await nats.connect('admin'), blobs: folderBlobStore(folders.join('none')) };
    await backUp({ ...start, folder: folders.join('served'), served });
    expect(readManifest(folders.join('served')).served).toEqual(served);
    expect(readManifest(folders.join('copy')).served).toBeUndefined();
  });

  it('a payload that was stored while blobs were copied is swept after the restore when its fact is not in the copy', async () => {
    const empty = await startNats({ streams: false });
    try {
      const blobs = folderBlobStore(folders.join('payloads'));
      const publisher = new FactPublisher(await nats.connect('gateway'), { blobs });
      const large = { ...person, turn: newTurnId(), declaredSession: 'x'.repeat(1_000_000) };
      const late: BlobStore = {
        put: (bytes) => blobs.put(bytes),
        get: (digest) => blobs.get(digest),
        has: (digest) => blobs.has(digest),
        delete: (digest) => blobs.delete(digest),
        list: async function* () {
          await publisher.publish('turnOpened', TurnOpened.fromPartial(large));
          yield* blobs.list();
        },
      };
      const folder = folders.join('late');
      expect(await backUp({ broker: await nats.connect('admin'), blobs: late, folder })).toMatchObject({ blobs: 1 });
      const broker = await empty.connect('admin');
      const restored = folderBlobStore(folders.join('late-restored'));
      await restoreBackup({ broker, blobs: restored, folder });
      expect(await sweepPayloads(broker, restored, Number.MAX_SAFE_INTEGER)).toMatchObject({ swept: 1 });
      expect(await collect(restored.list())).toEqual([]);
    } finally {
      await empty.stop();
    }
  });

  it('a backup leaves out a blob that is rotten, and names it', async () => {
    const blobs = folderBlobStore(folders.join('rotten'));
    const [sound, rotten] = [await blobs.put(Buffer.from('sound')), await blobs.put(Buffer.from('rotten'))];
    writeFileSync(folders.join('rotten', rotten.slice(0, 2), rotten), 'rotted');
    const folder = folders.join('without-rotten');
    const manifest = await backUp({ broker: await nats.connect('admin'), blobs, folder });
    expect(manifest).toMatchObject({ blobs: 1, corruptBlobs: [rotten] });
    expect(readManifest(folder).corruptBlobs).toEqual([rotten]);
    const copied = folderBlobStore(join(folder, 'blobs'));
    expect([await copied.has(sound), await copied.has(rotten)]).toEqual([true, false]);
  });

  it('a backup does not overwrite another', async () => {
    const broker = await nats.connect('admin');
    const blobs = folderBlobStore(folders.join('blobs'));
    await expect(backUp({ broker, blobs, folder: folders.join('copy') })).rejects.toMatchObject({
      code: 'backup_folder_taken',
    });
  });
});
