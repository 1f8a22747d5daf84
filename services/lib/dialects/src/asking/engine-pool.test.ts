import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { asBacktalkError } from '@backtalk/kit';
import { FakeClock, until } from '@backtalk/kit/testing';
import { Lease } from '@backtalk/proto/weights';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { startFakeEngine, type FakeEngine } from '../testing/index.js';
import { EnginePool } from './engine-pool.js';
import { ResolvedUrls } from './resolved-urls.js';

const options = { deadlineMs: 10_000 };
const messages = [{ role: 'user', content: 'Hello there' }];

let engines: FakeEngine[];
let leased: FakeEngine[];
let changed: () => void;
let clock: FakeClock;
let pool: EnginePool;

beforeEach(async () => {
  engines = await Promise.all([startFakeEngine(), startFakeEngine()]);
  leased = engines;
  clock = new FakeClock();
  pool = new EnginePool({
    urls: undefined,
    dialect: 'vllm',
    apiKey: '',
    model: '',
    clock,
    events: { enginesKnown: () => undefined, engineRefused: () => undefined },
    leases: {
      current: () => leased.map(leaseOf),
      onChange: (listener: (leases: readonly Lease[]) => void) => {
        changed = () => listener([]);
        return () => undefined;
      },
      lookAgain: () => Promise.resolve(),
      stop: () => undefined,
    },
  });
});
afterEach(async () => {
  await pool.stop();
  await Promise.all(engines.map((engine) => engine.stop()));
});

function leaseOf({ url, baseModel }: FakeEngine): Lease {
  const engine = { url, dialect: 'vllm', pools: ['judge'], baseModel, ready: true };
  return Lease.fromPartial({ kind: 'loader', instance: url, engine });
}

const urlOf = () => pool.use(options, ({ url }) => Promise.resolve(url));

/** A vote that is in flight until it is released. */
function held(): { readonly url: Promise<string>; readonly release: () => void } {
  let release: () => void = () => undefined;
  const ended = new Promise<void>((resolve) => (release = resolve));
  const url = new Promise<string>((resolve, reject) => {
    pool
      .use(options, async (engine) => {
        resolve(engine.url);
        await ended;
      })
      .catch(reject);
  });
  return { url, release };
}

describe('EnginePool', () => {
  it('the engine with the least in flight is asked', async () => {
    const votes = [held(), held(), held(), held()];
    const asked = await Promise.all(votes.map(({ url }) => url));
    for (const { url } of engines) expect(asked.filter((one) => one === url)).toHaveLength(2);
    for (const { release } of votes) release();
  });

  it('an engine whose lease ended gets no new vote, and what is in flight there comes to its end', async () => {
    const [leaving, staying] = engines;
    if (leaving === undefined || staying === undefined) expect.unreachable();
    leaving.settings.firstTokenMs = 200;
    const inFlight = pool.use(options, ({ client, model, url }) =>
      client.chat({ model, messages }, options).then(() => url),
    );
    await until(() => leaving.counts.requests === 1, { what: 'A vote in flight' });
    leased = [staying];
    changed();
    expect(await inFlight).toBe(leaving.url);
    expect([await urlOf(), await urlOf()]).toEqual([staying.url, staying.url]);
  });

  it('an engine that was not there is asked after the others for a while', async () => {
    const [away, there] = engines;
    if (away === undefined || there === undefined) expect.unreachable();
    await away.stop();
    const asked = pool.use(options, ({ client, model }) => client.chat({ model, messages }, options));
    await expect(asked).rejects.toMatchObject({ code: 'engine_unreachable' });
    expect([await urlOf(), await urlOf()]).toEqual([there.url, there.url]);
    await clock.advance(5_000);
    expect(await urlOf()).toBe(away.url);
    await away.restart();
  });

  it('the name of a model that is served no more is asked anew', async () => {
    const [engine] = engines;
    if (engine === undefined) expect.unreachable();
    const { port } = engine;
    const events = { enginesKnown: () => undefined, engineRefused: () => undefined };
    const urls = new ResolvedUrls({ urls: [engine.url], clock, events });
    const named = new EnginePool({ urls, dialect: 'vllm', apiKey: '', model: '', clock, events, leases: undefined });
    const vote = () =>
      named.use(options, async ({ client, model }) => {
        await client.chat({ model, messages }, options);
        return model;
      });
    expect(await vote()).toBe(engine.baseModel);
    await engine.stop();
    const other = await startFakeEngine({ port, baseModel: 'another' });
    engines = [...engines.slice(1), other];
    const codes: string[] = [];
    const served = () => vote().catch((error: unknown) => void codes.push(asBacktalkError(error).code));
    // The connection that was kept is closed first.
    expect(await until(served, { what: 'The other model' })).toBe('another');
    expect(codes).toContain('model_not_found');
    await named.stop();
  });

  it.each([
    ['one model', [{ id: 'reader' }, { id: 'adapter', parent: 'reader' }], 'reader'],
    [
      'two names of one model',
      [
        { id: 'reader', root: '/models/r' },
        { id: 'alias', root: '/models/r' },
      ],
      'reader',
    ],
    ['two models', [{ id: 'painter' }, { id: 'reader' }], 'engine_reply_invalid'],
  ])(
    'a host that serves %s is asked for the only one where none is named, or for nothing',
    async (_count, data, comesTo) => {
      const host = createServer((_request, response) => response.end(JSON.stringify({ data })));
      await new Promise<void>((resolve) => host.listen(0, '127.0.0.1', resolve));
      const url = `http://127.0.0.1:${String((host.address() as AddressInfo).port)}`;
      const events = { enginesKnown: () => undefined, engineRefused: () => undefined };
      const urls = new ResolvedUrls({ urls: [url], clock, events });
      const unnamed = new EnginePool({
        urls,
        dialect: 'openai',
        apiKey: '',
        model: '',
        clock,
        events,
        leases: undefined,
      });
      const asked = unnamed.use(options, ({ model }) => Promise.resolve(model));
      expect(await asked.catch((error: unknown) => asBacktalkError(error).code)).toBe(comesTo);
      await unnamed.stop();
      host.close();
    },
  );
});
