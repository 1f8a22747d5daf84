import { once } from 'node:events';
import { request as httpRequest, type IncomingHttpHeaders, type IncomingMessage } from 'node:http';
import { text } from 'node:stream/consumers';
import { rm, writeFile } from 'node:fs/promises';
import { jsonCodec, keyGrant, kvBucket, sha256Hex, type KeyGrant } from '@backtalk/kit';
import { until } from '@backtalk/kit/testing';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import {
  ready,
  startGateway,
  startLeasedEngine,
  startSurroundings,
  type Environment,
  type LeasedEngine,
  type StartedGateway,
  type Surroundings,
} from '../testing/started-gateway.js';

let around: Surroundings;
let leased: LeasedEngine;

beforeAll(async () => {
  around = await startSurroundings();
  leased = await startLeasedEngine(around, 'engine-1', {
    versions: ['backtalk-v0', 'acme-v0', 'acme-v1', 'shared-v0', 'other-v0'],
  });
});

afterAll(async () => {
  await leased.stop();
  await around.stop();
});

async function withGateway<T>(changes: Environment, use: (started: StartedGateway) => Promise<T>): Promise<T> {
  const started = await startGateway(around, changes);
  try {
    return await use(started);
  } finally {
    await started.gateway.stop();
  }
}

interface Answered {
  readonly status: number;
  readonly body: unknown;
}

/** Not by fetch, which sets Host and Origin itself. */
async function send(
  { url }: StartedGateway,
  path: string,
  { headers = {}, body }: { headers?: IncomingHttpHeaders; body?: object } = {},
): Promise<Answered> {
  const method = body === undefined ? 'GET' : 'POST';
  const request = httpRequest(`${url}${path}`, { method, headers: { 'content-type': 'application/json', ...headers } });
  request.end(body === undefined ? undefined : JSON.stringify(body));
  const [response] = (await once(request, 'response')) as [IncomingMessage];
  return { status: response.statusCode ?? 0, body: JSON.parse(await text(response)) };
}

const chat = (model = 'backtalk') => ({ model, messages: [{ role: 'user', content: 'Hello there' }] });
const as = (key: string) => ({ authorization: `Bearer ${key}` });

describe('a gateway without keys', () => {
  let started: StartedGateway;

  beforeAll(async () => {
    started = await startGateway(around);
    await ready(started);
  });

  afterAll(() => started.gateway.stop());

  it.each([
    ['a name that was bound to this machine anew', { host: 'attacker.example' }],
    ['a name that only begins like this machine’s', { host: 'localhost.attacker.example:30000' }],
    ['another machine’s address', { host: '192.168.1.7:30000' }],
    ['a page of another site', { origin: 'https://attacker.example' }],
    ['a page without an origin', { origin: 'null' }],
    ['a browser that says it came across sites', { 'sec-fetch-site': 'cross-site' }],
  ])('answers no request of %s, on any path', async (_what, headers) => {
    const before = leased.engine.counts.requests;
    const feedback = { turn_id: 'turn_1', score: -1 };
    const answers = await Promise.all([
      send(started, '/chat/completions', { headers, body: chat() }),
      send(started, '/models', { headers }),
      send(started, '/models/backtalk', { headers }),
      send(started, '/feedback', { headers, body: feedback }),
    ]);
    for (const answer of answers)
      expect(answer).toMatchObject({
        status: 403,
        body: {
          error: { code: 'foreign_request', message: expect.stringContaining('npx backtalk keys add') as string },
        },
      });
    expect(leased.engine.counts.requests).toBe(before);
  });

  it.each([
    { host: 'localhost' },
    { host: 'LOCALHOST:1234' },
    { host: '127.0.0.1:30000' },
    { host: '[::1]:30000' },
    { origin: 'http://localhost:8080' },
    { 'sec-fetch-site': 'same-origin' },
  ])('answers this machine’s own programs: %j', async (headers) => {
    expect(await send(started, '/chat/completions', { headers, body: chat() })).toMatchObject({ status: 200 });
  });
});

describe('keys that were revoked', () => {
  const wrongKey = { status: 401, body: { error: { code: 'invalid_api_key' } } };

  it('a file without keys lets no request in, with the revoked key or without one', async () => {
    const path = around.directory.join('emptied.json');
    await writeFile(path, JSON.stringify({ keys: [] }));
    await withGateway({ BACKTALK_KEYS_FILE: path }, async (started) => {
      expect(await send(started, '/models')).toMatchObject(wrongKey);
      expect(await send(started, '/models', { headers: as('sk-gone') })).toMatchObject(wrongKey);
    });
  });

  it('a key comes as OpenAI’s clients send it, or Anthropic’s, and each is refused in its own words', async () => {
    const path = around.directory.join('two-ways.json');
    await writeFile(path, JSON.stringify({ keys: [{ sha256: sha256Hex('sk-ann'), ...grant('acme') }] }));
    await withGateway({ BACKTALK_KEYS_FILE: path }, async (started) => {
      const withKey = (key: string) => ({ headers: { 'x-api-key': key } });
      expect(await send(started, '/models', withKey('sk-ann'))).toMatchObject({ status: 200 });
      expect(await send(started, '/models', withKey('sk-gone'))).toMatchObject(wrongKey);
      expect(await send(started, '/models', { headers: { ...as('sk-ann'), 'x-api-key': 'sk-gone' } })).toMatchObject({
        status: 200,
      });
      expect(await send(started, '/messages', { ...withKey('sk-gone'), body: chat() })).toMatchObject({
        status: 401,
        body: { type: 'error', error: { type: 'authentication_error' } },
      });
    });
  });

  it('a file that does not exist yet leaves the gateway keyless', async () => {
    await withGateway({ BACKTALK_KEYS_FILE: around.directory.join('never-made.json') }, async (started) => {
      expect(await send(started, '/models')).toMatchObject({ status: 200 });
    });
  });

  it('a file that was removed lets no request in after a start, until the gateway’s mark is removed, too', async () => {
    const path = around.directory.join('removed.json');
    await writeFile(path, JSON.stringify({ keys: [{ sha256: sha256Hex('sk-one'), ...grant('acme') }] }));
    const spool = around.directory.join('spool-of-removed-keys');
    const environment = { BACKTALK_KEYS_FILE: path, BACKTALK_SPOOL_DIR: spool };
    await withGateway(environment, async (started) => {
      expect(await send(started, '/models', { headers: as('sk-one') })).toMatchObject({ status: 200 });
    });
    await rm(path);
    await withGateway(environment, async (started) => {
      expect(await send(started, '/models')).toMatchObject(wrongKey);
      expect(await send(started, '/models', { headers: as('sk-one') })).toMatchObject(wrongKey);
    });
    await rm(`${spool}.had-keys`);
    await withGateway(environment, async (started) => {
      expect(await send(started, '/models')).toMatchObject({ status: 200 });
    });
  });

  it('the mark of a release before, beside a file that is gone, keeps the gateway closed', async () => {
    const path = around.directory.join('gone-before.json');
    await writeFile(`${path}.had-keys`, '');
    const spool = { BACKTALK_SPOOL_DIR: around.directory.join('spool-of-keys-before') };
    await withGateway({ BACKTALK_KEYS_FILE: path, ...spool }, async (started) => {
      expect(await send(started, '/models')).toMatchObject(wrongKey);
    });
    await withGateway(spool, async (started) => {
      expect(await send(started, '/models')).toMatchObject(wrongKey);
    });
  });

  it('keys that moved from a file to an empty bucket leave the gateway closed', async () => {
    const path = around.directory.join('moved.json');
    await writeFile(path, JSON.stringify({ keys: [{ sha256: sha256Hex('sk-moved'), ...grant('acme') }] }));
    const spool = { BACKTALK_SPOOL_DIR: around.directory.join('spool-of-moved-keys') };
    await withGateway({ BACKTALK_KEYS_FILE: path, ...spool }, async (started) => {
      expect(await send(started, '/models', { headers: as('sk-moved') })).toMatchObject({ status: 200 });
    });
    await withGateway(spool, async (started) => {
      expect(await send(started, '/models')).toMatchObject(wrongKey);
    });
  });

  it('a bucket that the broker has lost lets no request in after a start', async () => {
    const bucket = await keysBucket();
    const environment = { BACKTALK_SPOOL_DIR: around.directory.join('spool-of-lost-keys') };
    await bucket.put(sha256Hex('sk-lost'), grant('acme'));
    await withGateway(environment, async (started) => {
      const headers = as('sk-lost');
      await until(async () => (await send(started, '/models', { headers })).status === 200, { what: 'the key' });
    });
    await (await around.nats.connect('admin')).jsm.streams.purge('KV_keys');
    await withGateway(environment, async (started) => {
      expect(await send(started, '/models')).toMatchObject(wrongKey);
    });
  });

  it('the last key’s end does not open the gateway, nor the one that starts after it', async () => {
    const bucket = await keysBucket();
    await withGateway({}, async (started) => {
      expect(await send(started, '/models')).toMatchObject({ status: 200 });
      await bucket.put(sha256Hex('sk-last'), grant('acme'));
      await until(async () => (await send(started, '/models')).status === 401, {
        what: 'a gateway that asks for keys',
      });
      await bucket.delete(sha256Hex('sk-last'));
      const headers = as('sk-last');
      await until(async () => (await send(started, '/models', { headers })).status !== 200, { what: 'the revocation' });
      expect(await send(started, '/models')).toMatchObject(wrongKey);
    });
    await withGateway({}, async (started) => {
      expect(await send(started, '/models')).toMatchObject(wrongKey);
      // With keys, any Host will do: proxies and tunnels have names of their own.
      await bucket.put(sha256Hex('sk-new'), grant('acme'));
      const headers = { ...as('sk-new'), host: 'models.acme.example' };
      await until(async () => (await send(started, '/models', { headers })).status === 200, { what: 'the new key' });
    });
  });
});

async function keysBucket() {
  return kvBucket(await around.nats.connect('cli'), 'keys', jsonCodec(keyGrant));
}

const grant = (tenant: string, policies?: string[]): KeyGrant => keyGrant.parse({ tenant, policies });

describe('policies of a key', () => {
  const served = { BACKTALK_POLICIES: 'acme,other,shared' };
  const notFound = { status: 404, body: { error: { code: 'model_not_found' } } };
  let number = 0;

  async function withKeys<T>(grants: readonly object[], use: (started: StartedGateway) => Promise<T>): Promise<T> {
    number += 1;
    const path = around.directory.join(`policies-${number}.json`);
    const keys = grants.map((given, at) => ({ sha256: sha256Hex(`sk-${at}`), ...given }));
    await writeFile(path, JSON.stringify({ keys }));
    return withGateway({ ...served, BACKTALK_KEYS_FILE: path }, use);
  }

  const modelsOf = async (started: StartedGateway, key: string) => {
    const { body } = await send(started, '/models', { headers: as(key) });
    return (body as { data: { id: string }[] }).data.map(({ id }) => id);
  };

  it('a key opens the policies that it names; of others neither alias nor version exists for it', async () => {
    await withKeys([{ tenant: 'acme', policies: ['acme', 'shared'] }, { tenant: 'other' }], async (started) => {
      await ready(started);
      const before = leased.engine.counts.requests;
      for (const model of ['other', 'other-v0', 'backtalk-v0'])
        expect(await send(started, '/chat/completions', { headers: as('sk-0'), body: chat(model) })).toMatchObject(
          notFound,
        );
      expect(await send(started, '/models/other-v0', { headers: as('sk-0') })).toMatchObject(notFound);
      expect(leased.engine.counts.requests).toBe(before);
      expect(await modelsOf(started, 'sk-0')).toEqual(['acme', 'acme-v0', 'acme-v1', 'shared', 'shared-v0']);
      for (const model of ['acme', 'shared', 'shared-v0'])
        expect(await send(started, '/chat/completions', { headers: as('sk-0'), body: chat(model) })).toMatchObject({
          status: 200,
        });
    });
  });

  it('a key that names none opens all while keys are of one tenant, else the one named like its tenant', async () => {
    await withKeys([{ tenant: 'acme' }, { tenant: 'acme' }], async (started) => {
      await ready(started);
      expect(await modelsOf(started, 'sk-0')).toContain('other');
    });
    await withKeys([{ tenant: 'acme' }, { tenant: 'other' }, { tenant: 'third' }], async (started) => {
      await ready(started);
      expect(await modelsOf(started, 'sk-0')).toEqual(['acme', 'acme-v0', 'acme-v1']);
      expect(await modelsOf(started, 'sk-1')).toEqual(['other', 'other-v0']);
      expect(await modelsOf(started, 'sk-2')).toEqual([]);
      const headers = as('sk-1');
      expect(await send(started, '/chat/completions', { headers, body: chat('acme-v1') })).toMatchObject(notFound);
    });
  });
});

describe('feedback', () => {
  it('feedback is its giver’s, with the giver’s consent; the turn stays its owner’s, and another policy’s is not found', async () => {
    const path = around.directory.join('givers.json');
    const policies = ['backtalk'];
    const people = [
      { user: 'ann', policies },
      { user: 'bob', policies },
      { user: 'cat', policies, train: false },
      { user: 'dan', policies: ['acme'] },
      { user: 'app', policies, acceptsUserField: true },
    ];
    const keys = people.map((person) => ({ sha256: sha256Hex(`sk-${person.user}`), tenant: 'acme', ...person }));
    await writeFile(path, JSON.stringify({ keys }));
    await withGateway({ BACKTALK_KEYS_FILE: path }, async (started) => {
      await ready(started);
      const { body } = await send(started, '/chat/completions', { headers: as('sk-ann'), body: chat() });
      const turn = (body as { id: string }).id;
      const owner = (await around.reader.last('turnOpened', { turn }))?.message.user;
      const give = async (user: string, extra: object = {}, headers: IncomingHttpHeaders = {}) => {
        const feedback = { turn_id: turn, score: -1, ...extra };
        const answer = await send(started, '/feedback', {
          headers: { ...as(`sk-${user}`), ...headers },
          body: feedback,
        });
        return { answer, fact: (await around.reader.last('feedbackGiven', { turn }))?.message };
      };
      expect((await give('ann')).fact).toMatchObject({ user: owner, giver: owner, consent: { train: true } });
      const { fact: bobs } = await give('bob');
      expect(bobs).toMatchObject({ user: owner, consent: { train: true } });
      expect(bobs?.giver).not.toBe(owner);
      const { fact: cats } = await give('cat');
      expect(cats).toMatchObject({ user: owner, consent: { train: false, source: 'key' } });
      expect(new Set([owner, bobs?.giver, cats?.giver]).size).toBe(3);
      expect((await give('bob', {}, { 'x-backtalk-train': 'off' })).fact).toMatchObject({
        giver: bobs?.giver,
        consent: { train: false, source: 'request' },
      });
      expect((await give('app', { user: 'bob', score: 1 })).fact).toMatchObject({ giver: bobs?.giver, score: 1 });
      expect((await give('app', { comment: 'Too long.' })).fact).toMatchObject({ giver: owner, comment: 'Too long.' });
      expect((await give('dan')).answer).toMatchObject({ status: 404, body: { error: { code: 'turn_not_found' } } });
    });
  });
});

describe('an answer by its id', () => {
  it('an answer is gone on from by its own person alone, whichever key speaks for them, where its policy is open', async () => {
    const path = around.directory.join('repliers.json');
    const policies = ['backtalk'];
    const people = [
      { key: 'ann', tenant: 'acme', user: 'ann', policies },
      { key: 'bob', tenant: 'acme', user: 'bob', policies },
      { key: 'app', tenant: 'acme', user: 'app', policies, acceptsUserField: true },
      { key: 'ann-of-another', tenant: 'other', user: 'ann', policies },
      { key: 'ann-elsewhere', tenant: 'acme', user: 'ann', policies: ['acme'] },
    ];
    const keys = people.map(({ key, ...person }) => ({ sha256: sha256Hex(`sk-${key}`), ...person }));
    await writeFile(path, JSON.stringify({ keys }));
    await withGateway({ BACKTALK_KEYS_FILE: path, BACKTALK_POLICIES: 'backtalk,acme' }, async (started) => {
      await ready(started);
      const { body } = await send(started, '/chat/completions', { headers: as('sk-ann'), body: chat() });
      const { id } = body as { id: string };
      const respond = (key: string, asked: object) =>
        send(started, '/responses', { headers: as(`sk-${key}`), body: { model: 'backtalk', ...asked } });
      const ask = (key: string, more: object = {}) =>
        respond(key, { input: 'Go on.', previous_response_id: id, ...more });
      const item = { type: 'item_reference', id: `${id.replace('turn_', 'msg_')}_0` };
      const askByItem = (key: string) => respond(key, { input: [item, { role: 'user', content: 'Go on.' }] });
      expect(await ask('ann')).toMatchObject({ status: 200 });
      expect(await ask('app', { user: 'ann' })).toMatchObject({ status: 200 });
      expect(await askByItem('ann')).toMatchObject({ status: 200 });
      const before = leased.engine.counts.requests;
      const missing = { status: 400, body: { error: { code: 'previous_response_not_found' } } };
      const noItem = { status: 400, body: { error: { code: 'item_not_found' } } };
      for (const key of ['bob', 'app', 'ann-of-another']) {
        expect(await ask(key)).toMatchObject(missing);
        expect(await askByItem(key)).toMatchObject(noItem);
      }
      expect(await ask('ann-elsewhere', { model: 'acme' })).toMatchObject(missing);
      expect(leased.engine.counts.requests).toBe(before);
    });
  });
});
