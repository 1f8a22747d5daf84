import { PersonErased, TurnOpened } from '@backtalk/proto/facts';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { folderBlobStore } from '../blobs/index.js';
import { newId } from '../identity/index.js';
import { collect, startNats, TemporaryDirectory, type TestNats } from '../testing/index.js';
import { erasePerson } from './erasure.js';
import { FactPublisher } from './publisher.js';
import { FactReader } from './reader.js';

let nats: TestNats;
const directory = new TemporaryDirectory('erasure');

beforeAll(async () => {
  nats = await startNats();
});

afterAll(async () => {
  await nats.stop();
  directory.remove();
});

it('an erased person’s facts and blobs are gone, everybody else’s stay, and the fact that says so stays', async () => {
  const blobs = folderBlobStore(directory.path);
  const publisher = new FactPublisher(await nats.connect('gateway'), { blobs });
  const messages = new Uint8Array(1_000_000);
  for (const user of ['gone', 'gone', 'here']) {
    const fact = { turn: newId(), tenant: 'acme', user, conversation: { messages } };
    await publisher.publish('turnOpened', TurnOpened.fromPartial(fact));
  }
  await publisher.publish('personErased', PersonErased.fromPartial({ tenant: 'acme', user: 'gone' }));
  const collector = await nats.connect('collector');
  const erased = await erasePerson(collector, { tenant: 'acme', user: 'gone' });
  expect(erased.facts).toBe(2);
  expect(erased.blobs).toHaveLength(2);
  for (const digest of erased.blobs) await blobs.delete(digest);
  const left = await collect(new FactReader(collector, blobs).read(['turnOpened', 'personErased']));
  expect(left.map((fact) => [fact.name, fact.message.user])).toEqual([
    ['turnOpened', 'here'],
    ['personErased', 'gone'],
  ]);
  expect((await erasePerson(collector, { tenant: 'acme', user: 'gone' })).facts).toBe(0);
});
