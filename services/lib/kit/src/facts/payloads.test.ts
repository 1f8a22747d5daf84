import { BatchClosed, TurnOpened } from '@backtalk/proto/facts';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { folderBlobStore } from '../blobs/folder-blob-store.js';
import { blobErrors, type BlobStore } from '../blobs/blob-store.js';
import type { Broker } from '../broker/connect.js';
import { newId, sha256Hex } from '../identity/ids.js';
import { startNats, type TestNats } from '../testing/nats-server.js';
import { TemporaryDirectory } from '../testing/temporary-directory.js';
import { subjectOf } from '../topology/subjects.js';
import { deleteFacts } from './delete-facts.js';
import { adoptPayloads, dropPayload, markGoing, sweepPayloads } from './payloads.js';
import { FactPublisher } from './publisher.js';
import { FactReader } from './reader.js';

let nats: TestNats;
let gateway: Broker;
let trainer: Broker;
let admin: Broker;
const directory = new TemporaryDirectory('payloads');
const blobs = folderBlobStore(directory.path);
/** Later than anything that was named. */
const noGrace = Number.MAX_SAFE_INTEGER;

beforeAll(async () => {
  nats = await startNats();
  [gateway, trainer, admin] = await Promise.all([
    nats.connect('gateway'),
    nats.connect('trainer'),
    nats.connect('admin'),
  ]);
});

afterAll(async () => {
  await nats.stop();
  directory.remove();
});

function large(): { fact: TurnOpened; digest: string } {
  const shape = { turn: newId(), tenant: 'acme', user: 'u1', policy: 'backtalk' };
  const fact = TurnOpened.fromPartial({ ...shape, declaredSession: 'x'.repeat(1_000_000) });
  return { fact, digest: sha256Hex(TurnOpened.encode(fact).finish()) };
}

const forget = (fact: TurnOpened) => admin.jsm.streams.purge('TURNS', { filter: subjectOf('turnOpened', fact) });
const publish = (fact: TurnOpened, store: BlobStore = blobs) =>
  new FactPublisher(gateway, { blobs: store }).publish('turnOpened', fact);

describe('the payload of a large fact', () => {
  it('stays as long as its fact, and goes with it', async () => {
    const { fact, digest } = large();
    await publish(fact);
    expect(await sweepPayloads(trainer, blobs, noGrace)).toMatchObject({ swept: 0 });
    expect(await blobs.has(digest)).toBe(true);
    await forget(fact);
    expect(await sweepPayloads(trainer, blobs, noGrace)).toMatchObject({ swept: 1 });
    expect(await blobs.has(digest)).toBe(false);
    expect(await sweepPayloads(trainer, blobs, noGrace)).toEqual({ swept: 0, bytes: 0 });
  });

  it('stays while a writer may be about to store its fact, however often that writer begins anew', async () => {
    const { fact, digest } = large();
    await publish(fact);
    await forget(fact);
    const namedMs = Date.now();
    const { bytes } = await sweepPayloads(trainer, blobs, namedMs - 60_000);
    expect(bytes).toBeGreaterThan(1_000_000);
    expect(await blobs.has(digest)).toBe(true);
    await sweepPayloads(trainer, blobs, noGrace);
    expect(await blobs.has(digest)).toBe(false);
  });

  it.each(['get', 'delete'] as const)(
    'a payload is there when its fact is stored again in the moment of the sweep: before its %s',
    async (moment) => {
      const { fact, digest } = large();
      await publish(fact);
      await forget(fact);
      const again = (here: typeof moment) => (here === moment ? publish(fact) : undefined);
      const racing: BlobStore = {
        put: (bytes) => blobs.put(bytes),
        get: async (name) => {
          await again('get');
          return blobs.get(name);
        },
        has: (name) => blobs.has(name),
        list: () => blobs.list(),
        delete: async (name) => {
          await again('delete');
          await blobs.delete(name);
        },
      };
      expect(await sweepPayloads(trainer, racing, noGrace)).toMatchObject({ swept: 0 });
      const read = await new FactReader(trainer, blobs).last('turnOpened', { turn: fact.turn });
      expect(read?.message).toEqual(fact);
      await forget(fact);
      await sweepPayloads(trainer, blobs, noGrace);
      expect(await blobs.has(digest)).toBe(false);
    },
  );

  it('goes too when its fact is from before payloads were named', async () => {
    const { fact, digest } = large();
    await publish(fact);
    await admin.jsm.streams.purge('KV_payloads');
    expect(await adoptPayloads(trainer)).toBe(1);
    expect(await adoptPayloads(trainer)).toBe(0);
    await forget(fact);
    expect(await sweepPayloads(trainer, blobs, noGrace)).toMatchObject({ swept: 1 });
    expect(await blobs.has(digest)).toBe(false);
  });

  it.each(['its blob', 'its fact'])('goes when its writer died before %s', async (before) => {
    const { fact, digest } = large();
    const dies: BlobStore = {
      put: async (bytes) => {
        if (before === 'its fact') await blobs.put(bytes);
        throw blobErrors.blobStoreFull();
      },
      get: (name) => blobs.get(name),
      has: (name) => blobs.has(name),
      list: () => blobs.list(),
      delete: (name) => blobs.delete(name),
    };
    await expect(publish(fact, dies)).rejects.toMatchObject({ code: 'blob_store_full' });
    expect(await blobs.has(digest)).toBe(before === 'its fact');
    expect(await sweepPayloads(trainer, blobs, noGrace)).toEqual({ swept: 1, bytes: 0 });
    expect(await blobs.has(digest)).toBe(false);
  });

  it('goes at the next sweep when its deletion broke off, and no sooner than its fact', async () => {
    const { fact, digest } = large();
    await publish(fact);
    await markGoing(trainer, digest);
    expect(await sweepPayloads(trainer, blobs, 0)).toMatchObject({ swept: 0 });
    await forget(fact);
    const broken: BlobStore = {
      put: (bytes) => blobs.put(bytes),
      get: (name) => blobs.get(name),
      has: (name) => blobs.has(name),
      list: () => blobs.list(),
      delete: () => Promise.reject(blobErrors.blobStoreFailed({ doing: 'delete', reason: 'EIO' })),
    };
    await expect(dropPayload(trainer, broken, digest)).rejects.toMatchObject({ code: 'blob_store_failed' });
    expect(await sweepPayloads(trainer, blobs, 0)).toEqual({ swept: 1, bytes: 0 });
    expect(await blobs.has(digest)).toBe(false);
  });

  it('a payload of a policy goes at the next sweep when its deletion broke off, and no sooner than its fact', async () => {
    const publisher = new FactPublisher(trainer, { blobs });
    const batch = (number: number, why: string) => BatchClosed.fromPartial({ policy: 'p', number, why });
    const first = batch(1, 'x'.repeat(1_000_000));
    const digest = sha256Hex(BatchClosed.encode(first).finish());
    const { sequence } = await publisher.publish('batchClosed', first, { expectSequence: 0 });
    await publisher.publish('batchClosed', batch(2, ''), { expectSequence: sequence });
    await markGoing(trainer, digest, subjectOf('batchClosed', first));
    expect(await sweepPayloads(trainer, blobs, noGrace)).toMatchObject({ swept: 0 });
    await deleteFacts(admin, [sequence], { from: 'WEIGHTS' });
    expect(await sweepPayloads(trainer, blobs, 0)).toEqual({ swept: 1, bytes: 0 });
    expect(await blobs.has(digest)).toBe(false);
  });

  it('leaves blobs alone that nobody named as a payload', async () => {
    const weights = await blobs.put(new TextEncoder().encode('weights'));
    await sweepPayloads(trainer, blobs, noGrace);
    expect(await blobs.has(weights)).toBe(true);
  });
});
