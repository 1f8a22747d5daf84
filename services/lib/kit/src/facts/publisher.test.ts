import { BatchClosed, SessionEnded, TurnOpened } from '@backtalk/proto/facts';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { folderBlobStore } from '../blobs/folder-blob-store.js';
import type { Broker } from '../broker/connect.js';
import { newId } from '../identity/ids.js';
import { newTrace } from '../telemetry/trace.js';
import { startNats, type TestNats } from '../testing/nats-server.js';
import { TemporaryDirectory } from '../testing/temporary-directory.js';
import { until } from '../testing/until.js';
import { FactPublisher } from './publisher.js';
import { FactReader } from './reader.js';

let nats: TestNats;
let gateway: Broker;
let trainer: Broker;
const directory = new TemporaryDirectory('publisher');
const blobs = folderBlobStore(directory.path);

beforeAll(async () => {
  nats = await startNats();
  gateway = await nats.connect('gateway');
  trainer = await nats.connect('trainer');
});

afterAll(async () => {
  await nats.stop();
  directory.remove();
});

function opened(turn = newId()): TurnOpened {
  return TurnOpened.fromPartial({ turn, tenant: 'acme', user: 'u1', policy: 'backtalk', provisionalSession: 's1' });
}

function batch(number: number, policy: string): BatchClosed {
  return BatchClosed.fromPartial({
    policy,
    number,
    parent: `${policy}-v${number - 1}`,
    version: `${policy}-v${number}`,
  });
}

describe('a fact that happens once', () => {
  it('a fact is stored once: a repeat changes nothing and counts as success', async () => {
    const publisher = new FactPublisher(gateway);
    const fact = opened();
    const first = await publisher.publish('turnOpened', fact);
    const second = await publisher.publish('turnOpened', fact);
    expect(first.stored).toBe('now');
    expect(second).toEqual({ sequence: first.sequence, stored: 'before' });
  });

  it('a fact comes back with its message, ids, trace and the broker’s time', async () => {
    const trace = newTrace();
    const fact = opened();
    const { sequence } = await new FactPublisher(gateway).publish('turnOpened', fact, {
      trace,
      headers: { parent: 'p1' },
    });
    const read = await new FactReader(trainer).last('turnOpened', { turn: fact.turn });
    expect(read).toMatchObject({ name: 'turnOpened', sequence, message: fact, trace: { traceId: trace.traceId } });
    expect(read?.headers).toEqual({ turn: fact.turn, parent: 'p1', session: 's1', policy: 'backtalk' });
    expect(Math.abs((read?.timeMs ?? 0) - Date.now())).toBeLessThan(60_000);
  });

  it('refuses a fact when a token of its subject could break out of its place', async () => {
    const publisher = new FactPublisher(gateway);
    for (const turn of ['', 'a.b', '*', '>', 'a b', 'ü']) {
      await expect(publisher.publish('turnOpened', opened(turn))).rejects.toMatchObject({ code: 'fact_invalid' });
    }
  });
});

describe('a chain', () => {
  it('a chain has one winner when writers race', async () => {
    const publisher = new FactPublisher(trainer);
    const racers = [1, 2, 3, 4, 5].map((number) =>
      publisher.publish('batchClosed', batch(number, 'race'), { expectSequence: 0 }),
    );
    const results = await Promise.allSettled(racers);
    expect(results.filter((result) => result.status === 'fulfilled')).toHaveLength(1);
    for (const result of results) {
      if (result.status === 'rejected')
        expect(result.reason).toMatchObject({ code: 'fact_superseded', retry: 'never' });
    }
  });

  it('takes a repeat of its own last fact as stored, because the first ack may have been lost', async () => {
    const publisher = new FactPublisher(trainer);
    const first = await publisher.publish('batchClosed', batch(1, 'again'), { expectSequence: 0 });
    const repeat = await publisher.publish('batchClosed', batch(1, 'again'), { expectSequence: 0 });
    expect(repeat).toEqual({ sequence: first.sequence, stored: 'before' });
    const next = await publisher.publish('batchClosed', batch(2, 'again'), { expectSequence: first.sequence });
    expect(next.stored).toBe('now');
  });

  it('refuses a fact of a chain that does not say what it follows', async () => {
    const publisher = new FactPublisher(trainer);
    await expect(publisher.publish('batchClosed', batch(1, 'untold'))).rejects.toMatchObject({ code: 'fact_invalid' });
  });
});

describe('a large payload', () => {
  it('a large payload goes to the blob store and comes back as if it had not', async () => {
    const fact = opened();
    const text = 'x'.repeat(2_000_000);
    const large = TurnOpened.fromPartial({ ...fact, conversation: { messages: new TextEncoder().encode(text) } });
    const publisher = new FactPublisher(gateway, { blobs });
    await publisher.publish('turnOpened', large);
    expect((await publisher.publish('turnOpened', large)).stored).toBe('before');
    const read = await new FactReader(gateway, blobs).last('turnOpened', { turn: fact.turn });
    expect(read?.message.conversation?.messages.byteLength).toBe(2_000_000);
    await expect(new FactReader(gateway).last('turnOpened', { turn: fact.turn })).rejects.toMatchObject({
      code: 'blob_store_absent',
    });
  });

  it('refuses a payload above the limit', async () => {
    const messages = new Uint8Array(33 * 1024 * 1024);
    const huge = TurnOpened.fromPartial({ ...opened(), conversation: { messages } });
    await expect(new FactPublisher(gateway, { blobs }).publish('turnOpened', huge)).rejects.toMatchObject({
      code: 'fact_too_large',
    });
  });
});

describe('a publisher', () => {
  it('refuses to store facts of another service', async () => {
    const publish = new FactPublisher(trainer).publish('turnOpened', opened());
    await expect(publish).rejects.toMatchObject({ code: 'broker_forbidden', retry: 'never' });
  });

  it('says within its deadline that the broker is away, and stores again when it is back', async () => {
    const publisher = new FactPublisher(gateway, { timeoutMs: 500 });
    await nats.kill();
    const fact = SessionEnded.fromPartial({ tenant: 'acme', user: 'u', session: newId() });
    const started = performance.now();
    await expect(publisher.publish('sessionEnded', fact)).rejects.toMatchObject({
      code: 'broker_unavailable',
      retry: 'later',
    });
    expect(performance.now() - started).toBeLessThan(15_000);
    await nats.restart();
    const stored = await until(() => publisher.publish('sessionEnded', fact), { what: 'storing after the restart' });
    expect(stored.sequence).toBeGreaterThan(0);
  });
});
