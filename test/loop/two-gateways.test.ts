// Two gateways of one installation: limits, conversations and routes belong to the installation, not to a gateway.
import { until } from '@backtalk/kit/testing';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { startCrowd } from './crowd.js';
import { LogBook } from './fact-log.js';
import { startTestMachine, type TestMachine } from './machine.js';
import { ask, type Message } from './talk.js';

const limited = { key: 'sk-limited', tenant: 'one', user: 'limited', limits: { requestsPerMinute: 6 } };
const first = { key: 'sk-first', tenant: 'one', user: 'first', limits: { requestsPerMinute: 1 } };
const open = { key: 'sk-open', tenant: 'one', user: 'open' };
const authorization = (key: string) => ({ authorization: `Bearer ${key}` });

let machine: TestMachine;
let second: string;

beforeAll(async () => {
  machine = await startTestMachine({
    engine: 'stand-in',
    training: 'stand-in',
    keys: [limited, first, open],
    environment: {
      trainer: { BACKTALK_RECIPE_SET: 'effective=4,effectiveMin=4' },
      // A gateway that cannot look in time lets a request pass: here it shall look.
      gateway: { BACKTALK_LOOKUP_WAIT: '5s' },
    },
  });
  second = await machine.addGateway();
});

afterAll(async () => {
  await machine?.stop();
});

/** A gateway that has not reached Valkey yet counts nothing. */
async function counts(gateway: string): Promise<void> {
  const question = {
    messages: [{ role: 'user' as const, content: 'Do you count?' }],
    headers: authorization(first.key),
  };
  await until(async () => (await ask(gateway, question)).status === 429, { what: 'A gateway that counts' });
}

it('a key has its requests a minute once, whichever gateway it asks', async () => {
  await Promise.all([machine.gateway, second].map(counts));
  const minuteOf = () => Math.floor(Date.now() / 60_000);
  const begun = minuteOf();
  const statuses: number[] = [];
  for (let at = 0; at < 20; at += 1) {
    const gateway = at % 2 === 0 ? machine.gateway : second;
    const messages: Message[] = [{ role: 'user', content: `question ${String(at)}` }];
    statuses.push((await ask(gateway, { messages, headers: authorization(limited.key) })).status);
  }
  const served = statuses.filter((status) => status === 200).length;
  expect(served).toBeGreaterThanOrEqual(6);
  expect(served).toBeLessThanOrEqual(6 * (minuteOf() - begun + 1));
  expect(statuses.filter((status) => status !== 200)).toEqual(Array.from({ length: 20 - served }, () => 429));
});

it('a conversation begun at one gateway is continued at the other, and both come to answer with a new version', async () => {
  const book = await LogBook.open(machine);
  const headers = authorization(open.key);
  const asked: Message[] = [{ role: 'user', content: 'why is the sea salty?' }];
  const answer = await ask(machine.gateway, { messages: asked, headers });
  const replied: Message[] = [
    ...asked,
    { role: 'assistant', content: answer.text },
    { role: 'user', content: 'Please answer in one short sentence.' },
  ];
  const next = await ask(second, { messages: replied, headers });
  const fact = await until(() => book.reader.last('turnContinued', { turn: answer.turn }), { what: 'The next state' });
  expect(fact.message.continuedBy).toBe(next.turn);

  const crowd = startCrowd({ gateway: second, seed: 3, clients: 3, corrects: 1, key: open.key });
  await until(async () => (await book.stable()) !== 'backtalk-v0', { what: 'A version', timeoutMs: 60_000 });
  await crowd.stop();
  const version = await book.stable();
  for (const gateway of [machine.gateway, second]) {
    const isNew = async () => (await ask(gateway, { messages: asked, headers })).weights !== 'backtalk-v0';
    await until(isNew, { what: 'An answer with the new version', timeoutMs: 60_000 });
  }
  expect(version).not.toBe('backtalk-v0');
  await book.close();
});

it('a gateway that is killed takes nothing with it but what it had in flight', async () => {
  const headers = authorization(open.key);
  const before = machine.pid('gateway-2');
  machine.kill('gateway-2');
  const messages: Message[] = [{ role: 'user', content: 'and how deep is it?' }];
  const { status, finished } = await ask(machine.gateway, { messages, headers });
  expect({ status, finished }).toEqual({ status: 200, finished: true });
  await machine.serves('gateway-2', before);
  expect((await ask(second, { messages, headers })).status).toBe(200);
});
