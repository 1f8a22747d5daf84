import { BatchClosed, SessionEnded, TurnOpened, WeightsTrained } from '@backtalk/proto/facts';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { folderBlobStore } from '../blobs/folder-blob-store.js';
import type { Broker } from '../broker/connect.js';
import { brokerErrors } from '../broker/errors.js';
import { brokerError } from '../broker/translate.js';
import { newId, sha256Hex } from '../identity/ids.js';
import { collect } from '../testing/collect.js';
import { FakeClock } from '../testing/fake-clock.js';
import { lagBehind } from '../testing/lagging-copy.js';
import { startNats, type TestNats } from '../testing/nats-server.js';
import { TemporaryDirectory } from '../testing/temporary-directory.js';
import { until } from '../testing/until.js';
import { FactPublisher } from './publisher.js';
import { FactReader } from './reader.js';
import { TurnLog } from './turn-log.js';

let nats: TestNats;
let gateway: Broker;
let collector: Broker;

beforeAll(async () => {
  nats = await startNats();
  gateway = await nats.connect('gateway');
  collector = await nats.connect('collector');
});

afterAll(() => nats.stop());

async function publishTurns(user: string, count: number): Promise<string[]> {
  const publisher = new FactPublisher(gateway);
  const turns = Array.from({ length: count }, () => newId());
  for (const turn of turns) {
    const ids = { turn, tenant: 'acme', user };
    await publisher.publish('turnOpened', TurnOpened.fromPartial({ ...ids, policy: 'backtalk' }));
    await publisher.publish('sessionEnded', SessionEnded.fromPartial({ ...ids, session: turn }));
  }
  return turns;
}

describe('counting', () => {
  it('the broker says how many facts of a name there are', async () => {
    const reader = new FactReader(collector);
    const before = await reader.count('sessionEnded');
    await publishTurns(newId(), 70);
    expect((await reader.count('sessionEnded')) - before).toBe(70);
    expect(await reader.count('turnJudged')).toBe(0);
  });
});

describe('reading', () => {
  it('gives several facts in the order of the log, from any sequence on, to the present end', async () => {
    const user = newId();
    const turns = await publishTurns(user, 200);
    const reader = new FactReader(collector);
    const filter = { turnOpened: { user }, sessionEnded: { user } };
    const all = await collect(reader.read(['turnOpened', 'sessionEnded'], { filter }));
    expect(all).toHaveLength(400);
    expect(all.map((fact) => fact.sequence)).toEqual(all.map((fact) => fact.sequence).toSorted((a, b) => a - b));
    expect(all.flatMap((fact) => (fact.name === 'turnOpened' ? [fact.message.turn] : []))).toEqual(turns);
    const from = all[300]?.sequence ?? 0;
    expect(await collect(reader.read(['turnOpened', 'sessionEnded'], { filter, from }))).toHaveLength(100);
    const sinceMs = all[300]?.timeMs ?? 0;
    const late = await collect(reader.read(['turnOpened', 'sessionEnded'], { filter, sinceMs }));
    const sequences = (facts: typeof all) => facts.map(({ sequence }) => sequence);
    expect(sequences(late)).toEqual(sequences(all.filter(({ timeMs }) => timeMs >= sinceMs)));
    const hour = 3_600_000;
    expect(await collect(reader.read(['turnOpened'], { filter, sinceMs: sinceMs - hour }))).toHaveLength(200);
    expect(await collect(reader.read(['turnOpened'], { filter, sinceMs: sinceMs + hour }))).toEqual([]);
  });

  it('gives other work its turn after as many facts as are asked for at once', async () => {
    const user = newId();
    await publishTurns(user, 300);
    let isReading = true;
    let together = 0;
    let most = 0;
    const takeTurns = () => {
      together = 0;
      if (isReading) setImmediate(takeTurns);
    };
    takeTurns();
    const options = { filter: { turnOpened: { user } }, atOnce: 20 };
    for await (const row of new FactReader(collector).headers(['turnOpened'], options)) {
      together += row.headers.turn === undefined ? 0 : 1;
      most = Math.max(most, together);
    }
    isReading = false;
    expect(most).toBeGreaterThan(0);
    expect(most).toBeLessThanOrEqual(20);
  });

  it('gives ids alone where they are enough', async () => {
    const user = newId();
    const [turn = ''] = await publishTurns(user, 1);
    const rows = await collect(new FactReader(collector).headers(['turnOpened'], { filter: { turnOpened: { user } } }));
    expect(rows).toMatchObject([{ name: 'turnOpened', headers: { turn, policy: 'backtalk' } }]);
    expect(await new FactReader(collector).lastHeaders('turnOpened', { turn })).toEqual(rows[0]);
  });

  it('ends at once where there is nothing', async () => {
    const filter = { turnOpened: { user: newId() } };
    expect(await collect(new FactReader(collector).read(['turnOpened'], { filter }))).toEqual([]);
    expect(await new FactReader(collector).last('turnOpened', { turn: newId() })).toBeUndefined();
  });

  it('loses and doubles nothing when the broker is killed in the middle', async () => {
    const user = newId();
    await publishTurns(user, 300);
    const seen: string[] = [];
    for await (const fact of new FactReader(collector).read(['turnOpened'], { filter: { turnOpened: { user } } })) {
      seen.push(fact.message.turn);
      if (seen.length === 100) await nats.restart();
    }
    expect(seen).toHaveLength(300);
    expect(new Set(seen).size).toBe(300);
  });

  it('loses and doubles nothing when the broker hangs in the middle for longer than a reader waits', async () => {
    const user = newId();
    await publishTurns(user, 300);
    // The broker goes on when the reader has given its consumer up, and sends what that one still had to send.
    const hanging: Broker = {
      ...collector,
      ask: (request) => {
        const answer = collector.ask(request);
        if (request.subject.startsWith('$JS.API.CONSUMER.CREATE.')) nats.resume();
        return answer;
      },
    };
    const seen: string[] = [];
    for await (const fact of new FactReader(hanging).read(['turnOpened'], { filter: { turnOpened: { user } } })) {
      seen.push(fact.message.turn);
      if (seen.length === 20) nats.pause();
    }
    expect(seen).toHaveLength(300);
    expect(new Set(seen).size).toBe(300);
  });

  it('passes over what cannot be read when it is told whom to tell', async () => {
    const user = newId();
    const admin = await nats.connect('admin');
    await until(() => admin.status() === 'up');
    await admin.js.publish(`backtalk.turn.opened.acme.${user}.bad`, new Uint8Array([255, 255]));
    await publishTurns(user, 1);
    const reader = new FactReader(collector);
    const filter = { turnOpened: { user } };
    await expect(collect(reader.read(['turnOpened'], { filter }))).rejects.toMatchObject({ code: 'fact_undecodable' });
    const codes: string[] = [];
    const onUnreadable = ({ code }: { code: string }) => codes.push(code);
    expect(await collect(reader.read(['turnOpened'], { filter, onUnreadable }))).toHaveLength(1);
    expect(codes).toEqual(['fact_undecodable']);
  });

  it('passes over a fact whose payload is lost, and waits for one that may come late', async () => {
    const user = newId();
    const [directory, clock] = [new TemporaryDirectory('lost'), new FakeClock(Date.now())];
    const blobs = folderBlobStore(directory.path);
    const ids = { turn: newId(), tenant: 'acme', user, policy: 'backtalk' };
    const large = TurnOpened.fromPartial({ ...ids, declaredSession: 'x'.repeat(1_000_000) });
    await new FactPublisher(gateway, { blobs }).publish('turnOpened', large);
    const [turn] = await publishTurns(user, 1);
    await blobs.delete(sha256Hex(TurnOpened.encode(large).finish()));
    const filter = { turnOpened: { user } };
    const reader = new FactReader(collector, blobs, clock);
    const codes: string[] = [];
    const read = (more = {}) => collect(reader.read(['turnOpened'], { filter, ...more }));
    const onUnreadable = ({ code }: { code: string }) => codes.push(code);
    await expect(read({ onUnreadable })).rejects.toMatchObject({ code: 'blob_missing' });
    await clock.advance(11 * 60_000);
    await expect(read()).rejects.toMatchObject({ code: 'blob_missing' });
    expect((await read({ onUnreadable })).map(({ message }) => message.turn)).toEqual([turn]);
    expect(codes).toEqual(['blob_missing']);
    directory.remove();
  });

  it('stops with its signal', async () => {
    const user = newId();
    await publishTurns(user, 3);
    const ending = new AbortController();
    const reading = new FactReader(collector).read(['turnOpened'], {
      filter: { turnOpened: { user } },
      signal: ending.signal,
    });
    const read = async () => {
      for await (const fact of reading) if (fact.name === 'turnOpened') ending.abort();
    };
    await expect(read()).rejects.toMatchObject({ name: 'AbortError' });
  });

  it('stops with its signal while the broker makes no consumer for it', async () => {
    vi.spyOn(collector, 'ask').mockRejectedValue(brokerErrors.brokerUnavailable({ doing: 'create a consumer' }));
    const reading = collect(new FactReader(collector).read(['turnOpened'], { signal: AbortSignal.timeout(50) }));
    await expect(reading).rejects.toMatchObject({ name: 'TimeoutError' });
    vi.restoreAllMocks();
  });

  it('facts of two streams come in the order of time', async () => {
    const trainer = await nats.connect('trainer');
    const publisher = new FactPublisher(trainer);
    const policy = 'times';
    const closed = await publisher.publish('batchClosed', BatchClosed.fromPartial({ policy, number: 1 }), {
      expectSequence: 0,
    });
    await publisher.publish('weightsTrained', WeightsTrained.fromPartial({ policy, batch: 1 }), { expectSequence: 0 });
    const next = { expectSequence: closed.sequence };
    await publisher.publish('batchClosed', BatchClosed.fromPartial({ policy, number: 2 }), next);
    const filter = { batchClosed: { policy }, weightsTrained: { policy } };
    const names = await collect(new FactReader(trainer).read(['weightsTrained', 'batchClosed'], { filter }));
    expect(names.map((fact) => fact.name)).toEqual(['batchClosed', 'weightsTrained', 'batchClosed']);
  });
});

describe('what a service may do', () => {
  it('a service reads only the facts that it is named for', async () => {
    const loader = await nats.connect('loader');
    const reader = new FactReader(loader);
    await expect(reader.last('turnOpened', { turn: 'x' })).rejects.toMatchObject({ code: 'broker_forbidden' });
    await expect(collect(reader.read(['turnOpened']))).rejects.toMatchObject({ code: 'broker_forbidden' });
    expect(await collect(reader.read(['weightsStaged']))).toEqual([]);
  });

  it('a service neither acknowledges nor hears what belongs to others', async () => {
    const judge = await nats.connect('judge');
    const ask = async (subject: string) => {
      try {
        await judge.nc.request(subject, '', { timeout: 10_000 });
        return 'allowed';
      } catch (error) {
        return brokerError(error, { doing: 'test', subject }).code;
      }
    };
    for (const subject of [
      '$JS.ACK.TURNS.trainer_turnJudged.1.1.1.1.1',
      '$JS.API.STREAM.DELETE.TURNS',
      '$JS.API.STREAM.PURGE.TURNS',
      '$JS.API.CONSUMER.DELETE.TURNS.trainer_turnJudged',
      '$JS.API.CONSUMER.CREATE.TURNS',
      '$JS.API.CONSUMER.CREATE.TURNS.spy.>',
      '$JS.API.STREAM.MSG.GET.WEIGHTS',
      '$JS.API.DIRECT.GET.TURNS',
      'backtalk.dead.trainer.reason',
      '$KV.leases.trainer.t1',
      '_INBOX_trainer.anything',
    ]) {
      expect([subject, await ask(subject)]).toEqual([subject, 'broker_forbidden']);
    }
    const heard = judge.nc.subscribe('backtalk.>');
    await expect(heard[Symbol.asyncIterator]().next()).rejects.toMatchObject({ code: 'PERMISSIONS_VIOLATION' });
  });
});

describe('a copy of the log that lags', () => {
  it('a copy that lags hides neither a fact nor a "no" from a reader that asks to be sure', async () => {
    const user = newId();
    const turns = await publishTurns(user, 24);
    const known = { tenant: 'acme', user, turn: turns[0] ?? '' };
    const refused = { ...known, session: 's', source: 'request' };
    await new FactPublisher(await nats.connect('gateway')).publish('turnWithheld', refused);
    const trainer = new FactReader(await nats.connect('trainer'));
    const gateways = new FactReader(await nats.connect('gateway'));
    const copy = await lagBehind(nats, known);
    try {
      for (let round = 0; round < 4; round += 1)
        for (const turn of turns) {
          const ids = { tenant: 'acme', user, turn };
          expect((await trainer.last('turnOpened', ids, { sure: true }))?.message.turn).toBe(turn);
          const anyones = { tenant: 'acme', turn };
          expect((await gateways.lastHeaders('turnOpened', anyones, { sure: true }))?.headers.turn).toBe(turn);
        }
      for (const service of ['collector', 'judge'] as const) {
        const log = new TurnLog(new FactReader(await nats.connect(service)), true);
        for (let round = 0; round < 12; round += 1) {
          expect(await log.saidNo({ tenant: 'acme', user })).toBe(true);
          expect(await log.withheld(known)).toBeDefined();
        }
      }
      const absent = { tenant: 'acme', user, turn: newId() };
      expect(await trainer.last('turnOpened', absent, { sure: true })).toBeUndefined();
      expect(await gateways.lastHeaders('turnOpened', absent, { sure: true })).toBeUndefined();
    } finally {
      await copy.remove();
    }
  });
});
