import { TurnOpened } from '@backtalk/proto/facts';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { folderBlobStore } from '../blobs/folder-blob-store.js';
import type { Broker } from '../broker/connect.js';
import { newId } from '../identity/ids.js';
import { collect } from '../testing/collect.js';
import { FakeClock } from '../testing/fake-clock.js';
import { startNats, type TestNats } from '../testing/nats-server.js';
import { TemporaryDirectory } from '../testing/temporary-directory.js';
import { LogRoom } from './log-room.js';
import { sweepPayloads } from './payloads.js';
import { FactPublisher } from './publisher.js';

const bytesMax = 8_000_000;
const payloadBytes = 1_000_000;
let nats: TestNats;
let gateway: Broker;
let trainer: Broker;
let admin: Broker;
const directory = new TemporaryDirectory('log-room');
const blobs = folderBlobStore(directory.path);
const clock = new FakeClock(Date.now());

beforeAll(async () => {
  nats = await startNats({ streams: { turnsBytesMax: bytesMax } });
  [gateway, trainer, admin] = await Promise.all([
    nats.connect('gateway'),
    nats.connect('trainer'),
    nats.connect('admin'),
  ]);
});

beforeEach(async () => {
  await admin.jsm.streams.purge('TURNS');
  await sweepPayloads(trainer, blobs, Number.MAX_SAFE_INTEGER);
});

afterAll(async () => {
  await nats.stop();
  directory.remove();
});

function publish(bytes: number, publisher = new FactPublisher(gateway, { blobs })) {
  const ids = { turn: newId(), tenant: 'acme', user: 'u1', policy: 'backtalk' };
  return publisher.publish('turnOpened', TurnOpened.fromPartial({ ...ids, declaredSession: 'x'.repeat(bytes) }));
}

const refused = { code: 'stream_full', retry: 'later' };

/** Each by a publisher of its own, as by many processes. */
async function fill(times: number): Promise<void> {
  for (let count = 0; count < times; count += 1) await publish(payloadBytes);
}

describe('the bound of the log', () => {
  it('counts what lies beside the log: a payload above it is refused, and leaves neither blob nor name', async () => {
    await fill(7);
    await expect(publish(payloadBytes)).rejects.toMatchObject(refused);
    expect(await collect(blobs.list())).toHaveLength(7);
    expect((await admin.jsm.streams.info('KV_payloads')).state.messages).toBe(7);
  });

  it('counts what one publisher puts at the same time', async () => {
    const publisher = new FactPublisher(gateway, { blobs });
    const done = await Promise.allSettled(Array.from({ length: 12 }, () => publish(payloadBytes, publisher)));
    expect(done.filter(({ status }) => status === 'fulfilled')).toHaveLength(7);
    expect(await collect(blobs.list())).toHaveLength(7);
  });

  it('counts both: the log’s own facts leave less room for payloads, and payloads less for facts', async () => {
    for (let count = 0; count < 3; count += 1) await publish(800_000);
    await fill(5);
    await expect(publish(payloadBytes)).rejects.toMatchObject(refused);
    const room = new LogRoom(gateway, clock);
    await room.admitPayload(1);
    await expect(room.admitFact(800_000)).rejects.toMatchObject(refused);
    await room.admitFact(1_000);
  });

  it.each([
    ['a moment has passed', 10_000],
    ['its clock was set back', -3_600_000],
  ])('the log has room again when facts have gone, once a publisher looks anew: %s', async (_when, ms) => {
    await fill(7);
    const room = new LogRoom(gateway, clock);
    await expect(room.admitPayload(payloadBytes)).rejects.toMatchObject(refused);
    await admin.jsm.streams.purge('TURNS');
    await sweepPayloads(trainer, blobs, Number.MAX_SAFE_INTEGER);
    await expect(room.admitPayload(payloadBytes)).rejects.toMatchObject(refused);
    await clock.advance(ms);
    await room.admitPayload(payloadBytes);
  });

  it('leaves a fact to the broker where nothing lies beside the log', async () => {
    const room = new LogRoom(gateway, clock);
    await room.admitPayload(0);
    await room.admitFact(2 * bytesMax);
    await room.admitPayload(1);
    await expect(room.admitFact(2 * bytesMax)).rejects.toMatchObject(refused);
  });
});
