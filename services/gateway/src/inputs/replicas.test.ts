import OpenAI from 'openai';
import { afterEach, beforeAll, beforeEach, afterAll, describe, expect, it } from 'vitest';
import { systemClock, type Clock } from '@backtalk/kit';
import { until } from '@backtalk/kit/testing';
import {
  ready,
  startGateway,
  startLeasedEngine,
  startSurroundings,
  type LeasedEngine,
  type StartedGateway,
  type Surroundings,
} from '../testing/started-gateway.js';

const placesMax = 8;
let around: Surroundings;
let started: StartedGateway;
let replicas: LeasedEngine[];

beforeAll(async () => {
  around = await startSurroundings();
});

afterAll(() => around.stop());

beforeEach(async () => {
  replicas = await Promise.all(['engine-a', 'engine-b', 'engine-c'].map((name) => startLeasedEngine(around, name)));
  started = await startGateway(around, { BACKTALK_ENGINE_REQUESTS_MAX: String(placesMax) });
  await until(async () => (await started.metric('engines_ready')) === replicas.length);
  await ready(started);
});

afterEach(async () => {
  await started.gateway.stop();
  await Promise.all(replicas.map((replica) => replica.stop()));
});

const messages = [{ role: 'user' as const, content: 'Hello there' }];
const body = { model: 'backtalk', messages };
const client = () => new OpenAI({ baseURL: started.url, apiKey: 'none needed', maxRetries: 0 });

async function stream(session: string): Promise<string> {
  const asked = { ...body, stream: true as const };
  const chunks = await client().chat.completions.create(asked, { headers: { 'X-Session-Id': session } });
  let finish = '';
  for await (const chunk of chunks) finish = chunk.choices[0]?.finish_reason ?? finish;
  return finish;
}

async function whole(session: string): Promise<string> {
  const answer = await client().chat.completions.create(body, { headers: { 'X-Session-Id': session } });
  return answer.choices[0]?.finish_reason ?? '';
}

const requestsOf = () => replicas.map(({ engine }) => engine.counts.requests);

/** Clients that ask again and again until the work is done. Out: how every answer ended, errors among them. */
async function whileAsked(ask: (session: string) => Promise<string>, work: () => Promise<void>): Promise<string[]> {
  const ends: string[] = [];
  let stopping = false;
  const clients = Array.from({ length: 2 * replicas.length }, async (_, at) => {
    for (let session = 0; !stopping; session += 1)
      ends.push(await ask(`${at}-${session}`).catch((error: unknown) => String(error)));
  });
  await work();
  stopping = true;
  await Promise.all(clients);
  return ends;
}

const hasMore = (replica: LeasedEngine) => {
  const before = replica.engine.counts.requests;
  return until(() => replica.engine.counts.requests > before, { what: 'the replica to be asked again' });
};

describe('three replicas', () => {
  it('replicas share sessions, and each session stays where it was', async () => {
    const askAll = async () => {
      // Two at once: fewer than would make a session spill over.
      for (let at = 0; at < 60; at += 2) await Promise.all([whole(`session-${at}`), whole(`session-${at + 1}`)]);
    };
    await askAll();
    const first = requestsOf();
    await askAll();
    expect(requestsOf()).toEqual(first.map((count) => 2 * count));
    expect(Math.min(...first)).toBeGreaterThan(0);
  });

  it('replicas that announce that they leave, and come back one after another under load, fail no stream', async () => {
    for (const { engine } of replicas) Object.assign(engine.settings, { tokenMs: 2, answerTokens: 20 });
    const ends = await whileAsked(stream, async () => {
      for (const [at, replica] of replicas.entries()) {
        await hasMore(replica);
        await replica.lease.release();
        await until(async () => (await started.metric('engines_ready')) === replicas.length - 1);
        await until(() => replica.engine.counts.running === 0, { what: 'the last answers of a replica that leaves' });
        await replica.engine.stop();
        replicas[at] = await startLeasedEngine(around, `engine-${at}-again`);
        await hasMore(replicas[at]);
      }
    });
    expect(ends.filter((end) => end !== 'stop')).toEqual([]);
    expect(ends.length).toBeGreaterThan(10);
  });

  it('a replica’s sudden death under load fails no client that waits for a first byte: another answers', async () => {
    for (const { engine } of replicas) Object.assign(engine.settings, { firstTokenMs: 20 });
    const ends = await whileAsked(whole, async () => {
      for (const replica of replicas) {
        await hasMore(replica);
        await replica.engine.stop();
        await until(async () => (await started.metric('engine_retries_total')) > 0, {
          what: 'a request asked elsewhere',
        });
        await replica.engine.restart();
        await hasMore(replica);
      }
    });
    expect(ends.filter((end) => end !== 'stop')).toEqual([]);
  });

  it('asks every replica before a request fails, though all but one are dead', async () => {
    await replicas[0]?.engine.stop();
    await replicas[1]?.engine.stop();
    const asking = Array.from({ length: placesMax }, (_, at) => whole(`session-${at}`));
    expect(await Promise.all(asking)).toEqual(asking.map(() => 'stop'));
  });
});

describe('replicas that are full', () => {
  const refusal = async () => {
    const response = await fetch(`${started.url}/chat/completions`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify(body),
    });
    return { status: response.status, wait: response.headers.get('retry-after'), body: await response.json() };
  };
  const tooMany = { status: 429, body: { error: { code: 'server_overloaded', type: 'rate_limit_error' } } };

  it('a full replica hands over to the next one; when all are full a request gets 429 with Retry-After', async () => {
    for (const { engine } of replicas) Object.assign(engine.settings, { firstTokenMs: 60_000 });
    const leaving = Array.from({ length: placesMax * replicas.length }, () => new AbortController());
    const held = leaving.map(({ signal }) =>
      client()
        .chat.completions.create(body, { signal })
        .catch(() => undefined),
    );
    await until(() => requestsOf().every((count) => count === placesMax), { what: 'full replicas' });
    const refused = await refusal();
    expect(refused).toMatchObject(tooMany);
    expect(Number(refused.wait)).toBeGreaterThan(0);
    expect(requestsOf()).toEqual(replicas.map(() => placesMax));
    for (const one of leaving) one.abort();
    await Promise.all(held);
    for (const { engine } of replicas) Object.assign(engine.settings, { firstTokenMs: 0 });
    await until(async () => (await refusal()).status === 200, { what: 'places again' });
  });

  it('asks the other replicas when one reports that it is full, and answers 429 when all do', async () => {
    for (const { engine } of replicas.slice(1)) engine.settings.faults = { busy: true };
    expect(await Promise.all(['a', 'b', 'c', 'd'].map(whole))).toEqual(['stop', 'stop', 'stop', 'stop']);
    for (const { engine } of replicas) engine.settings.faults = { busy: true };
    const before = requestsOf();
    expect(await refusal()).toMatchObject(tooMany);
    expect(requestsOf()).toEqual(before.map((count) => count + 1));
  });
});

describe('a prompt on which engines fail', () => {
  const deadly = { model: 'backtalk', messages: [{ role: 'user' as const, content: 'the words that end an engine' }] };
  let seen: number;

  /** Every engine does so when it has been sent those words. */
  function whenHeard(act: (replica: LeasedEngine) => void): void {
    seen = 0;
    for (const replica of replicas)
      replica.engine.settings.heard = (body) => {
        if (!JSON.stringify(body).includes('end an engine')) return;
        seen += 1;
        act(replica);
      };
  }

  const answers = async () => (await whole('another')) === 'stop';

  it.each([false, true])(
    'two engines see it and no third, however often its client sends it (stream: %j)',
    async (stream) => {
      whenHeard(({ engine }) => {
        Object.assign(engine.settings, { tokenMs: 2 });
        setImmediate(() => void engine.stop());
      });
      // OpenAI’s client sends what failed so twice more by itself.
      const insisting = new OpenAI({ baseURL: started.url, apiKey: 'none needed', maxRetries: 2 });
      const ask = async () => {
        const answer = await insisting.chat.completions.create({ ...deadly, stream });
        if (Symbol.asyncIterator in answer) for await (const _ of answer);
      };
      await expect(ask()).rejects.toThrow();
      await until(() => ask().catch((error: unknown) => error instanceof OpenAI.UnprocessableEntityError));
      expect(seen).toBe(2);
      expect(await started.metric('prompts_given_up_total')).toBe(1);
      expect(await started.metric('engine_deaths_total')).toBe(2);
      expect(await answers()).toBe(true);
    },
  );

  it('two engines see it that answer 500 and live, and it may be sent again', async () => {
    for (const { engine } of replicas) engine.settings.faults = { failStatus: 500 };
    whenHeard(() => undefined);
    await expect(client().chat.completions.create(deadly)).rejects.toMatchObject({ status: 503 });
    expect(seen).toBe(2);
    for (const { engine } of replicas) engine.settings.faults = {};
    expect((await client().chat.completions.create(deadly)).model).toBe('backtalk');
  });

  it('all tries share one deadline: none is begun when the first has used it up', async () => {
    let aheadMs = 0;
    const clock: Clock = Object.create(systemClock, { now: { value: () => systemClock.now() + aheadMs } }) as Clock;
    const late = await startGateway(around, { BACKTALK_ANSWER_WAIT: '5m' }, clock);
    await ready(late);
    whenHeard(({ engine }) => {
      aheadMs = 6 * 60_000;
      engine.settings.faults = { failStatus: 500 };
    });
    const asking = new OpenAI({ baseURL: late.url, apiKey: 'none needed', maxRetries: 0 });
    await expect(asking.chat.completions.create(deadly)).rejects.toMatchObject({ status: 504, code: 'engine_timeout' });
    expect(seen).toBe(1);
    await late.gateway.stop();
  });
});
