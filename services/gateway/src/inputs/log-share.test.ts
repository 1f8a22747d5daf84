import { createHash } from 'node:crypto';
import { writeFile } from 'node:fs/promises';
import { FactReader, tenantHash, userHash } from '@backtalk/kit';
import { collect, until } from '@backtalk/kit/testing';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { RefusalRoom } from '../domain/refusal-room.js';
import {
  ready,
  remembering,
  startGateway,
  startLeasedEngine,
  startSurroundings,
  type LeasedEngine,
  type StartedGateway,
  type Surroundings,
} from '../testing/started-gateway.js';

interface Answered {
  readonly status: number;
  readonly headers: Headers;
  readonly body: { readonly id?: string; readonly state?: string; readonly error?: { readonly code: string } };
}

const mebibyte = 1024 * 1024;
const messages = [{ role: 'user', content: 'Hello there' }];
const valid = { model: 'backtalk', messages, max_tokens: 2 };
/** Of keys of one tenant, so that none stands for another's words. */
const sharesOfKeys = { cap: 1_500, zip: 3_000_000, not: 1_500, say: 7_000, wish: 12_000, end: 7_000, eve: undefined };

let around: Surroundings;
let leased: LeasedEngine;
let started: StartedGateway;

beforeAll(async () => {
  around = await startSurroundings();
  leased = await startLeasedEngine(around, 'engine-1');
  leased.engine.settings.maxContext = 4_000_000;
  const path = around.directory.join('keys.json');
  const of = (user: string, tenant: string, limits: object) => {
    const sha256 = createHash('sha256').update(user).digest('hex');
    return { sha256, tenant, user, policies: ['backtalk'], limits };
  };
  const bounded = Object.entries(sharesOfKeys).map(([user, captureBytesPerDay]) =>
    of(user, 'evil', { captureBytesPerDay }),
  );
  await writeFile(path, JSON.stringify({ keys: [of('ann', 'acme', {}), ...bounded] }));
  started = await startGateway(around, { BACKTALK_KEYS_FILE: path });
  await ready(started);
  await remembering(started, () => chat('ann', valid));
});

afterAll(async () => {
  await started?.gateway.stop();
  await leased?.stop();
  await around?.stop();
});

async function send(
  key: string,
  path: string,
  body: unknown,
  further: Readonly<Record<string, string>> = {},
  method = 'POST',
): Promise<Answered> {
  const headers = { 'content-type': 'application/json', authorization: `Bearer ${key}`, ...further };
  const sent = body === undefined ? {} : { body: JSON.stringify(body) };
  const response = await fetch(`${started.url}${path}`, { method, headers, ...sent });
  return { status: response.status, headers: response.headers, body: (await response.json()) as Answered['body'] };
}

const chat = (key: string, body: unknown, further?: Readonly<Record<string, string>>) =>
  send(key, '/chat/completions', body, further);

async function statusesOf(count: number, ask: () => Promise<Answered>): Promise<number[]> {
  const statuses: number[] = [];
  for (let asked = 0; asked < count; asked += 1) statuses.push((await ask()).status);
  return statuses;
}

async function refusalsOf(name: string): Promise<number> {
  const secret = 'a secret of the tests, long enough';
  const ids = { tenant: tenantHash(secret, 'evil'), user: userHash(secret, 'evil', name) };
  return (await collect(around.reader.headers(['turnWithheld'], { filter: { turnWithheld: ids } }))).length;
}

describe('the share of a day’s log', () => {
  it('a key whose share of the day’s log is full is answered and not stored but for a "no"; other keys are stored', async () => {
    const ask = (key: string) => chat(key, valid);
    const first = await ask('cap');
    const second = await ask('cap');
    const [kept, passedOver] = [first, second].map(({ body }) => body.id ?? '');
    expect([first, second].map(({ status }) => status)).toEqual([200, 200]);
    expect(first.headers.get('x-backtalk-capture')).toBeNull();
    expect(second.headers.get('x-backtalk-capture')).toBe('off; full=key');
    const others = await ask('eve');
    expect(others.headers.get('x-backtalk-capture')).toBeNull();
    for (const turn of [kept ?? '', others.body.id ?? ''])
      expect(await around.reader.last('turnCompleted', { turn })).toBeDefined();
    expect(await around.reader.last('turnOpened', { turn: passedOver ?? '' })).toBeUndefined();
    expect(await started.metric('turns_capped_total{of="key"}')).toBe(1);
    await chat('cap', valid, { 'X-Backtalk-Train': 'off' });
    const refusal = await until(() => around.reader.last('turnWithheld', { source: 'request' }), { what: 'the "no"' });
    expect(refusal.message.turn).not.toBe(kept);
    expect(await around.reader.last('turnOpened', { turn: refusal.message.turn })).toBeUndefined();
    // What is nowhere is not gone on from by its id, and the reason is said.
    const further = { model: 'backtalk', input: 'Go on.', previous_response_id: passedOver };
    const { status, body } = await send('cap', '/responses', further);
    expect([status, body.error?.code]).toEqual([400, 'previous_response_not_found']);
    expect(JSON.stringify(body)).toContain('share of the day’s log is full');
    const feedback = await send('cap', '/feedback', { turn_id: kept, score: 1 });
    expect(feedback).toMatchObject({ status: 429, body: { error: { code: 'rate_limit_exceeded' } } });
  });

  it('what compresses well fills a share by what the log will hold of it, and others are stored', async () => {
    const followed = [
      ...messages,
      { role: 'assistant', content: 'Hi' },
      { role: 'tool', content: 'x'.repeat(mebibyte) },
    ];
    const captured: boolean[] = [];
    for (let asked = 0; asked < 6; asked += 1) {
      const { status, headers } = await chat('zip', { ...valid, messages: followed });
      expect(status).toBe(200);
      captured.push(headers.get('x-backtalk-capture') === null);
    }
    expect(captured).toEqual([true, true, true, false, false, false]);
    expect((await chat('ann', valid)).headers.get('x-backtalk-capture')).toBeNull();
  });

  it('a "no" past a full share is one fact of its session, however often it is said', async () => {
    const no = (session: string) => chat('not', valid, { 'X-Backtalk-Train': 'off', 'X-Session-Id': session });
    await chat('not', valid);
    expect(await statusesOf(4, () => no('one'))).toEqual([200, 200, 200, 200]);
    expect(await refusalsOf('not')).toBe(1);
    expect(await statusesOf(2, () => no('two'))).toEqual([200, 200]);
    expect(await refusalsOf('not')).toBe(2);
  });

  it('a "no" that finds no room in the log is not answered, so that it is not lost', async () => {
    const ask = (train: string) => chat('not', valid, { 'X-Backtalk-Train': train, 'X-Session-Id': train });
    await chat('not', valid);
    const full = vi.spyOn(RefusalRoom.prototype, 'permits').mockReturnValue(false);
    const refused = await ask('off');
    expect(refused).toMatchObject({ status: 429, body: { error: { code: 'rate_limit_exceeded' } } });
    expect((await ask('on')).status).toBe(200);
    full.mockRestore();
    expect((await ask('off')).status).toBe(200);
  });

  it('feedback takes of it what the log takes for its facts, however short it is', async () => {
    const { id } = (await chat('say', valid)).body;
    expect(await statusesOf(3, () => send('say', '/feedback', { turn_id: id, score: 1 }))).toEqual([200, 200, 429]);
  });

  it('a lesson that is changed takes of it, and one that is so already is said nothing of', async () => {
    const { id } = (await send('wish', '/lessons', { text: 'Use tables.', policy: 'backtalk' })).body;
    const path = `/lessons/${id ?? ''}`;
    const reader = new FactReader(await around.nats.connect('trainer'));
    const facts = async () => (await collect(reader.headers(['lessonChanged']))).length;
    expect(await statusesOf(9, () => send('wish', path, undefined, {}, 'DELETE'))).toEqual(Array(9).fill(200));
    expect(await facts()).toBe(2);
    expect((await send('wish', path, { text: 'Use tables.' }, {}, 'PATCH')).body.state).toBe('retired');
    expect(await facts()).toBe(2);
    let state = 'active';
    const statuses = await statusesOf(6, () => {
      const changing = send('wish', path, { state }, {}, 'PATCH');
      state = state === 'active' ? 'retired' : 'active';
      return changing;
    });
    expect([...new Set(statuses)]).toEqual([200, 429]);
  });

  it('ends of sessions take of it, and are refused past it', async () => {
    const end = async () => {
      await chat('end', valid, { 'X-Session-Id': 'again' });
      return send('end', '/sessions/again', undefined, {}, 'DELETE');
    };
    expect(await statusesOf(4, end)).toEqual([200, 200, 429, 429]);
  });
});
