import { writeFile } from 'node:fs/promises';
import { FactPublisher, sha256Hex, type FactMessage } from '@backtalk/kit';
import { until } from '@backtalk/kit/testing';
import { SessionClosed, SessionClosed_Reason } from '@backtalk/proto/facts';
import OpenAI from 'openai';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import {
  ready,
  startConversing,
  startGateway,
  type Conversing,
  type StartedGateway,
  type Surroundings,
} from '../testing/started-gateway.js';

let conversing: Conversing;
let around: Surroundings;
let started: StartedGateway;
let client: OpenAI;

beforeAll(async () => {
  conversing = await startConversing();
  ({ around, started, client } = conversing);
});

afterAll(() => conversing.stop());

const hello = [{ role: 'user' as const, content: 'Hello there' }];

async function opened(turn: string): Promise<FactMessage<'turnOpened'>> {
  const fact = await until(() => around.reader.last('turnOpened', { turn }), { what: `turn.opened of ${turn}` });
  return fact.message;
}

describe('an attempt at a task', () => {
  const attempt = (name: string, group = 'task 7') =>
    client.chat.completions.create(
      { model: 'backtalk', messages: hello },
      { headers: { 'X-Session-Id': name, 'X-Group-Id': group } },
    );
  const outcome = async (
    name: string,
    body: object,
    { url, key } = { url: started.url, key: 'none' },
    more: Record<string, string> = {},
  ) => {
    const response = await fetch(`${url}/sessions/${name}/outcome`, {
      method: 'POST',
      headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json', ...more },
      body: JSON.stringify(body),
    });
    return { status: response.status, body: (await response.json()) as Record<string, unknown> };
  };

  /** As the collector does. */
  const close = async (
    { provisionalSession: session, tenant, user }: FactMessage<'turnOpened'>,
    reason = SessionClosed_Reason.REASON_IDLE,
  ) => {
    const closed = { session, tenant, user, policy: 'backtalk', reason };
    const publisher = new FactPublisher(await around.nats.connect('collector'));
    await publisher.publish('sessionClosed', SessionClosed.fromPartial(closed));
  };

  it('the group is known by a hash, which attempts at one task share', async () => {
    const body = { model: 'backtalk', messages: hello, session_id: 'one more', group_id: 'task 7' };
    const turns = [await attempt('one'), await client.chat.completions.create(body), await attempt('other', 'task 8')];
    const groups = await Promise.all(turns.map(async ({ id }) => (await opened(id)).group));
    expect(groups[0]).toMatch(/^group_[0-9a-f]{32}$/);
    expect(groups[1]).toBe(groups[0]);
    expect(groups[2]).not.toBe(groups[0]);
  });

  it('an outcome ends the session, and said twice it is one', async () => {
    const { id } = await attempt('solved');
    const { provisionalSession: session } = await opened(id);
    const given = { score: 0.5, attempts: 8 };
    expect(await outcome('solved', given)).toEqual({
      status: 200,
      body: { id: 'solved', object: 'outcome', session, score: 0.5, stored: true, repeated: false },
    });
    const ended = await around.reader.last('sessionEnded', { session });
    expect(ended?.message).toMatchObject({ turn: id, outcome: { score: 0.5, attempts: 8 } });
    expect(await outcome('solved', given)).toMatchObject({ status: 200, body: { repeated: true } });
    expect(await outcome('solved', { score: 1 })).toMatchObject({
      status: 409,
      body: { error: { code: 'session_over' } },
    });
  });

  it('a name that is used again has an outcome of its own, and a session that was ended has none', async () => {
    const first = await opened((await attempt('again')).id);
    expect((await outcome('again', { score: 1 })).status).toBe(200);
    await close(first);
    const second = await attempt('again');
    expect(await outcome('again', { score: 1 })).toMatchObject({ status: 200, body: { repeated: false } });
    const ended = await around.reader.last('sessionEnded', { session: second.id.replace('turn_', 'session_') });
    expect(ended?.message).toMatchObject({ turn: second.id, outcome: { score: 1 } });
    const third = await opened((await attempt('at once')).id);
    expect((await outcome('at once', { score: 1 })).status).toBe(200);
    // The next attempt begins before the collector has closed the one before.
    await attempt('at once');
    await close(third, SessionClosed_Reason.REASON_DONE);
    expect(await outcome('at once', { score: 1 })).toMatchObject({ status: 200, body: { repeated: false } });
    await attempt('given up');
    await fetch(`${started.url}/sessions/given%20up`, { method: 'DELETE' });
    expect(await outcome('given%20up', { score: 1 })).toMatchObject({ status: 409 });
  });

  it('an outcome that is not to be learned from ends the session and is not kept', async () => {
    const { provisionalSession: session } = await opened((await attempt('declined')).id);
    const off = { 'X-Backtalk-Train': 'off' };
    expect(await outcome('declined', { score: -1 }, undefined, off)).toMatchObject({
      status: 200,
      body: { score: -1, stored: false },
    });
    const ended = await around.reader.last('sessionEnded', { session });
    expect(ended?.message.session).toBe(session);
    expect(ended?.message.outcome).toBeUndefined();
  });

  it('an outcome of a session that was closed for its silence is refused', async () => {
    const { id } = await attempt('silent');
    await close(await opened(id));
    expect(await outcome('silent', { score: 1 })).toMatchObject({ status: 409 });
  });

  it('an outcome is its own person’s to give, and so is the session', async () => {
    const path = around.directory.join('keys.json');
    const keys = ['ann', 'ben'].map((user) => ({
      tenant: 'acme',
      user,
      policies: ['backtalk'],
      sha256: sha256Hex(user),
    }));
    await writeFile(path, JSON.stringify({ keys }));
    const keyed = await startGateway(around, { BACKTALK_KEYS_FILE: path });
    await ready(keyed);
    const [ann, ben] = ['ann', 'ben'].map((apiKey) => new OpenAI({ baseURL: keyed.url, apiKey, maxRetries: 0 }));
    if (ann === undefined || ben === undefined) return expect.unreachable();
    const { id } = await ann.chat.completions.create({ model: 'backtalk', messages: hello });
    await opened(id);
    const session = id.replace('turn_', 'session_');
    const given = (key: string) => outcome(session, { score: 1 }, { url: keyed.url, key });
    expect(await given('ben')).toMatchObject({ status: 404 });
    expect(await given('ann')).toMatchObject({ status: 200, body: { repeated: false } });
    const named = { headers: { 'X-Session-Id': session } };
    const bens = await ben.chat.completions.create({ model: 'backtalk', messages: hello }, named).withResponse();
    expect(bens.response.headers.get('x-backtalk-session')).not.toBe(session);
    await keyed.gateway.stop();
  });

  it('an outcome of an unknown session, or without a score, is refused by name', async () => {
    await attempt('scored');
    expect(await outcome('never', { score: 1 })).toMatchObject({
      status: 404,
      body: { error: { code: 'session_not_found' } },
    });
    expect(await outcome('scored', { score: 2 })).toMatchObject({ status: 400, body: { error: { param: 'score' } } });
  });
});
