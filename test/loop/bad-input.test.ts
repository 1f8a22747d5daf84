import { readdirSync } from 'node:fs';
import { until } from '@backtalk/kit/testing';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { audited } from './audited.js';
import { engineCounts, metric, setEngine } from './controls.js';
import { LogBook } from './fact-log.js';
import type { LedgerRow } from './ledger.js';
import { startTestMachine, type TestMachine } from './machine.js';
import { randomFrom } from './random.js';
import { ask, rowOf, type Heard, type Question } from './talk.js';

const seed = 11;
const leaving = 200;
const leavingAtOnce = 20;
const badKeys = 300;

const ann = { authorization: 'Bearer sk-ann' };
const bob = { authorization: 'Bearer sk-bob' };
const one = { authorization: 'Bearer sk-one-at-a-time' };

let machine: TestMachine;
let book: LogBook;
const ledger: LedgerRow[] = [];

beforeAll(async () => {
  machine = await startTestMachine({
    ...{ engine: 'stand-in', training: 'stand-in' },
    keys: [
      { key: 'sk-ann', tenant: 'acme', user: 'ann' },
      { key: 'sk-bob', tenant: 'other', user: 'bob' },
      { key: 'sk-one-at-a-time', tenant: 'acme', user: 'one', limits: { concurrency: 1 } },
    ],
  });
  book = await LogBook.open(machine);
}, 120_000);

afterAll(async () => {
  await book?.close();
  await machine?.stop();
});

async function say(question: Partial<Question> = {}): Promise<Heard> {
  const heard = await ask(machine.gateway, {
    messages: [{ role: 'user', content: 'Good morning' }],
    headers: ann,
    ...question,
  });
  ledger.push(rowOf('test', heard));
  return heard;
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
  ])('is refused before an engine is asked: %s', async (_what, body) => {
    const before = (await engineCounts(machine.engine)).requests;
    const refused = await send('POST', '/chat/completions', ann, { model: 'backtalk', ...body });
    expect(refused).toMatchObject({ status: 400, code: 'unsupported_parameter' });
    expect((await engineCounts(machine.engine)).requests).toBe(before);
  });
});

describe('another tenant', () => {
  it('finds none of what is not its own, and is told the same as of what nobody has', async () => {
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

  it('never continues a conversation that is not its own, whatever it sends', async () => {
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
  it('of one key is told to wait, and costs the others nothing', async () => {
    await setEngine(machine.engine, { tokenMs: 30, answerTokens: 40 });
    const begun = new Promise<void>((resolve) => {
      void say({ headers: one, onText: () => resolve() });
    });
    await begun;
    const refused = await send('POST', '/chat/completions', one, {
      model: 'backtalk',
      messages: [{ role: 'user', content: 'Me too' }],
    });
    expect(refused).toMatchObject({ status: 429, code: 'rate_limit_exceeded' });
    expect(Number(refused.retryAfter)).toBeGreaterThan(0);
    await setEngine(machine.engine, { tokenMs: 2, answerTokens: 12 });
    expect((await say()).finished).toBe(true);
  });

  it(`of wrong keys reaches no engine and no store, is told nothing, and stops nobody else`, async () => {
    const guess = (number: number) =>
      send('POST', '/chat/completions', { authorization: `Bearer sk-guess-${String(number)}` }, { model: 'backtalk' });
    const before = (await engineCounts(machine.engine)).requests;
    const guesses = Promise.all(Array.from({ length: badKeys }, (_, at) => guess(at)));
    const good = await Promise.all(Array.from({ length: 10 }, () => say()));
    const answers = await guesses;
    expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([401]));
    expect(new Set(answers.map(({ body }) => body)).size).toBe(1);
    expect(good.every(({ finished }) => finished)).toBe(true);
    expect((await engineCounts(machine.engine)).requests).toBe(before + good.length);
  });
});

describe('clients that go away', () => {
  const openFiles = () => readdirSync(`/proc/${String(machine.pid('gateway'))}/fd`).length;

  /** Asks, and leaves after some pieces of the answer; never at all, for some. */
  async function askAndLeave(number: number): Promise<void> {
    const random = randomFrom(seed * 1_000 + number);
    const controller = new AbortController();
    let pieces = random.below(24);
    if (pieces === 0) queueMicrotask(() => controller.abort());
    const content = `Number ${String(number)}, please describe yourself`;
    await say({
      ...{ messages: [{ role: 'user', content }], stream: random.below(8) > 0 },
      headers: random.below(2) > 0 ? ann : bob,
      signal: controller.signal,
      onText: () => {
        pieces -= 1;
        if (pieces === 0) controller.abort();
      },
    });
  }

  it(`at any moment (${String(leaving)} times) leave nothing behind, and nobody hears what was meant for another`, async () => {
    await setEngine(machine.engine, { tokenMs: 5, answerTokens: 16 });
    await askAndLeave(0);
    const before = openFiles();
    for (let number = 1; number < leaving; number += leavingAtOnce) {
      await Promise.all(Array.from({ length: leavingAtOnce }, (_, at) => askAndLeave(number + at)));
    }
    const idle = async () =>
      (await engineCounts(machine.engine)).running === 0 &&
      (await metric(machine, 'gateway', 'backtalk_gateway_requests_in_hand')) === 0 &&
      openFiles() < before + leavingAtOnce;
    await until(idle, { what: 'Everything is left behind', timeoutMs: 20_000, everyMs: 100 });
    expect(ledger.filter(({ finished }) => !finished).length).toBeGreaterThan(leaving / 4);
    expect(await audited(book, ledger)).toEqual([]);
  }, 120_000);
});
