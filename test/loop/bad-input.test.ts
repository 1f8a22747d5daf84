import { writeFileSync } from 'node:fs';
import { until } from '@backtalk/kit/testing';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { engineCounts, setEngine } from './controls.js';
import { LogBook } from './fact-log.js';
import { keysFileOf, startTestMachine, type TestKey, type TestMachine } from './machine.js';
import { ask, type Heard, type Question } from './talk.js';

const badKeys = 2_000;
const badKeysAtOnce = 100;

const ann = { authorization: 'Bearer sk-ann' };
const bob = { authorization: 'Bearer sk-bob' };
const one = { authorization: 'Bearer sk-one-at-a-time' };
const few = { authorization: 'Bearer sk-few-tokens' };

const lastingKeys: TestKey[] = [
  { key: 'sk-ann', tenant: 'acme', user: 'ann' },
  { key: 'sk-bob', tenant: 'other', user: 'bob' },
  { key: 'sk-one-at-a-time', tenant: 'acme', user: 'one', limits: { concurrency: 1 } },
  { key: 'sk-few-tokens', tenant: 'acme', user: 'few', limits: { tokensPerMinute: 10 } },
];
const revokedKey: TestKey = { key: 'sk-leaver', tenant: 'acme', user: 'leaver' };

let machine: TestMachine;
let book: LogBook;

beforeAll(async () => {
  machine = await startTestMachine({
    engine: 'stand-in',
    training: 'stand-in',
    keys: [...lastingKeys, revokedKey],
    // What reaches the engine is counted: the publisher asks it nothing.
    environment: { publisher: { BACKTALK_BEHAVIOUR_PROBES: '0' } },
  });
  book = await LogBook.open(machine);
});

afterAll(async () => {
  await book?.close();
  await machine?.stop();
});

async function say(question: Partial<Question> = {}): Promise<Heard> {
  const messages = [{ role: 'user' as const, content: 'Good morning' }];
  return ask(machine.gateway, { messages, headers: ann, ...question });
}

interface Refused {
  readonly status: number;
  readonly code: string;
  readonly body: string;
  readonly retryAfter: string | null;
}

async function send(method: string, path: string, headers: Record<string, string>, body?: object): Promise<Refused> {
  const response = await fetch(`${machine.gateway}/v1${path}`, {
    method,
    headers: { ...headers, 'content-type': 'application/json' },
    ...(body && { body: JSON.stringify(body) }),
  });
  const text = await response.text();
  const { error } = JSON.parse(text) as { error?: { code?: string } };
  return {
    status: response.status,
    code: error?.code ?? '',
    body: text,
    retryAfter: response.headers.get('retry-after'),
  };
}

describe('what would lead an engine elsewhere', () => {
  const messages = [{ role: 'user', content: 'Good morning' }];
  const image = (url: string) => [{ role: 'user', content: [{ type: 'image_url', image_url: { url } }] }];
  it.each([
    ['a file to load as weights', { messages, lora_path: '/etc' }],
    ['a template', { messages, chat_template: '{{ messages }}' }],
    ['a machine to take the prompt from', { messages, kv_transfer_params: { remote_host: '10.0.0.1' } }],
    ['an image of the web', { messages: image('https://example.com/a.png') }],
    ['an image of a private address', { messages: image('http://169.254.169.254/latest/meta-data') }],
    ['several choices', { messages, n: 4 }],
  ])('refuses, before an engine is asked, what would lead it elsewhere: %s', async (_what, body) => {
    const before = (await engineCounts(machine.engine)).requests;
    const refused = await send('POST', '/chat/completions', ann, { model: 'backtalk', ...body });
    expect(refused).toMatchObject({ status: 400, code: 'unsupported_parameter' });
    expect((await engineCounts(machine.engine)).requests).toBe(before);
  });
});

describe('another tenant', () => {
  it('another tenant finds none of what is not its own, and gets the reply for what does not exist', async () => {
    const { turn, session } = await say();
    const strangers = [
      await send('POST', '/feedback', bob, { turn_id: turn, score: -1 }),
      await send('DELETE', `/sessions/${session}`, bob),
    ];
    const nobodys = [
      await send('POST', '/feedback', bob, { turn_id: 'turn_01a1ffd60b2077ec83cef0c2dd23dee2', score: -1 }),
      await send('DELETE', '/sessions/session_01a1ffd60b2077ec83cef0c2dd23dee2', bob),
    ];
    expect(strangers.map(({ status }) => status)).toEqual([404, 404]);
    expect(strangers).toEqual(nobodys);
    expect((await send('POST', '/feedback', ann, { turn_id: turn, score: 1 })).status).toBe(200);
  });

  it('another tenant never continues a conversation that is not its own, whatever it sends', async () => {
    const opening = { role: 'user' as const, content: 'Tell me a secret' };
    const first = await say({ messages: [opening] });
    const stolen = [
      opening,
      { role: 'assistant' as const, content: first.text },
      { role: 'user' as const, content: 'And then?' },
    ];
    const second = await say({ messages: stolen, headers: bob });
    const opened = await until(() => book.reader.last('turnOpened', { turn: second.turn }), { what: 'The turn' });
    expect(opened.message).toMatchObject({ provisionalParent: '' });
    expect(second.session).not.toBe(first.session);
  });
});

describe('too much', () => {
  it('a key with too many requests has to wait, and costs the others nothing', async () => {
    // Longer than any pause of this test: it ends when the client leaves.
    await setEngine(machine.engine, { tokenMs: 100, answerTokens: 2_000 });
    const leaving = new AbortController();
    let first: Promise<unknown> = Promise.resolve();
    await new Promise<void>((resolve) => {
      first = say({ headers: one, signal: leaving.signal, onText: () => resolve() });
    });
    const refused = await send('POST', '/chat/completions', one, {
      model: 'backtalk',
      messages: [{ role: 'user', content: 'Me too' }],
    });
    expect(refused).toMatchObject({ status: 429, code: 'rate_limit_exceeded' });
    expect(Number(refused.retryAfter)).toBeGreaterThan(0);
    leaving.abort();
    await first;
    await setEngine(machine.engine, { tokenMs: 2, answerTokens: 12 });
    expect((await say()).finished).toBe(true);
  });

  it('a key has to wait when its tokens of the minute are used up', async () => {
    const refusal = async () => {
      const refused = await send('POST', '/chat/completions', few, {
        model: 'backtalk',
        messages: [{ role: 'user', content: 'More, more' }],
      });
      return refused.status !== 200 && refused;
    };
    const refused = await until(refusal, { what: 'A refusal' });
    expect(refused).toMatchObject({ status: 429, code: 'rate_limit_exceeded' });
    expect(Number(refused.retryAfter)).toBeGreaterThan(0);
    expect((await say()).finished).toBe(true);
  });
});

describe('a key that opens nothing', () => {
  const routes: readonly (readonly [method: string, path: string, body?: object])[] = [
    ['POST', '/chat/completions', { model: 'backtalk', messages: [{ role: 'user', content: 'Let me in' }] }],
    ['GET', '/models'],
    ['POST', '/feedback', { turn_id: 'turn_01a1ffd60b2077ec83cef0c2dd23dee2', score: 1 }],
    ['DELETE', '/sessions/session_01a1ffd60b2077ec83cef0c2dd23dee2'],
  ];

  async function knock(number: number): Promise<Refused> {
    const [method, path, body] = routes[number % routes.length] ?? ['GET', '/models'];
    return send(method, path, { authorization: `Bearer sk-guess-${String(number)}` }, body);
  }

  it(`a key that opens nothing reaches no engine and learns nothing, ${String(badKeys)} times over, while others are served`, async () => {
    const before = (await engineCounts(machine.engine)).requests;
    const told = new Set<string>();
    let good = 0;
    for (let number = 0; number < badKeys; number += badKeysAtOnce) {
      const guesses = Array.from({ length: badKeysAtOnce }, (_, at) => knock(number + at));
      const [heard, ...answers] = await Promise.all([say(), ...guesses]);
      for (const { status, body } of answers) told.add(`${String(status)} ${body}`);
      good += heard.finished ? 1 : 0;
    }
    expect(told.size).toBe(1);
    expect([...told][0]).toMatch(/^401 .*"invalid_api_key"/);
    expect(good).toBe(badKeys / badKeysAtOnce);
    expect((await engineCounts(machine.engine)).requests).toBe(before + good);
  });

  it('a refused key gets one reply, whether it is missing, misspelt, of another scheme, or revoked', async () => {
    const leaver = { authorization: `Bearer ${revokedKey.key}` };
    expect((await say({ headers: leaver })).finished).toBe(true);
    writeFileSync(machine.data.keys, keysFileOf(lastingKeys));
    const refused = async () => (await send('GET', '/models', leaver)).status === 401;
    await until(refused, { what: 'The revoked key is refused', timeoutMs: 60_000, everyMs: 200 });
    const before = (await engineCounts(machine.engine)).requests;
    const heads = [
      {},
      { authorization: '' },
      { authorization: 'Bearer sk-an' },
      { authorization: 'Basic c2stYW5u' },
      leaver,
    ];
    const answers = await Promise.all(
      heads.flatMap((headers) => routes.map(([method, path, body]) => send(method, path, headers, body))),
    );
    expect(new Set(answers.map(({ status, body }) => `${String(status)} ${body}`)).size).toBe(1);
    expect((await engineCounts(machine.engine)).requests).toBe(before);
    expect((await say()).finished).toBe(true);
  });
});
