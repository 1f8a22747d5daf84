import { FactPublisher, FactReader, newTurnId, openJetStreamBlobStore } from '@backtalk/kit';
import { collect, startNats, TemporaryDirectory, type TestNats } from '@backtalk/kit/testing';
import { TurnOpened } from '@backtalk/proto/facts';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { runCommand, type Place, type Ran } from '../testing/cluster-command.js';

const directory = new TemporaryDirectory('restore-command');
const blobsInBroker = { BACKTALK_BLOB_STORE: 'jetstream' };
let nats: TestNats;
let fresh: TestNats;

beforeAll(async () => {
  [nats, fresh] = await Promise.all([startNats(), startNats({ streams: false })]);
});

afterAll(async () => {
  await Promise.all([nats.stop(), fresh.stop()]);
  directory.remove();
});

const at = (where: TestNats, user: Place['user'], words: readonly string[]): Promise<Ran> =>
  runCommand({ nats: where, user, folder: directory.path, environment: blobsInBroker }, words);

describe('a copy of a cluster', () => {
  it('restores every fact, every blob and all that services look for into a broker that has never been used', async () => {
    const publisher = new FactPublisher(await nats.connect('gateway'));
    const turns = Array.from({ length: 20 }, () => newTurnId());
    for (const turn of turns) {
      await publisher.publish('turnOpened', TurnOpened.fromPartial({ turn, tenant: 'a', user: 'b', policy: 'p' }));
    }
    const digest = await (await openJetStreamBlobStore(await nats.connect('trainer'))).put(Buffer.from('weights'));
    expect(await at(nats, 'admin', ['backup', '--to', 'copy'])).toMatchObject({ status: 0 });

    const restored = await at(fresh, 'admin', ['restore', '--from', 'copy']);
    expect(restored).toMatchObject({ status: 0, values: [{ blobs: 1 }] });
    const reader = new FactReader(await fresh.connect('collector'));
    const found = await collect(reader.read(['turnOpened']));
    expect(found.flatMap((fact) => (fact.name === 'turnOpened' ? [fact.message.turn] : []))).toEqual(turns);
    const blobs = await openJetStreamBlobStore(await fresh.connect('loader'));
    expect(Buffer.from(await blobs.get(digest)).toString()).toBe('weights');
    const ensured = await at(fresh, 'admin', ['streams', 'ensure']);
    const [{ streams = [] } = {}] = ensured.values as { streams?: { done: string }[] }[];
    expect(new Set(streams.map(({ done }) => done))).toEqual(new Set(['nothing']));
  });

  it.each(['/proc/x', '/proc/x/y'])('a backup is refused at once where no folder can be made: %s', async (place) => {
    const refused = await at(nats, 'admin', ['backup', '--to', place]);
    expect(refused).toMatchObject({ status: 2, values: [{ error: { code: 'path_refused' } }] });
    expect(refused.complaint).toMatch(/^\/proc\/x cannot be made, .*: name another\.\n$/);
  });

  it('refuses to restore over a used broker, without a copy, and for any user but the admin', async () => {
    const again = await at(fresh, 'admin', ['restore', '--from', 'copy']);
    expect(again).toMatchObject({ status: 1, values: [{ error: { code: 'restore_not_empty' } }] });
    const nothing = await at(fresh, 'admin', ['restore', '--from', 'nowhere']);
    expect(nothing).toMatchObject({ status: 1, values: [{ error: { code: 'backup_unreadable' } }] });
    expect(await at(fresh, 'cli', ['restore', '--from', 'copy'])).toMatchObject({ status: 2 });
  });
});
