import { readdirSync } from 'node:fs';
import { until } from '@backtalk/kit/testing';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { audited } from './audited.js';
import { engineCounts, metric, setEngine } from './controls.js';
import { LogBook } from './fact-log.js';
import type { LedgerRow } from './ledger.js';
import { startTestMachine, type TestMachine } from './machine.js';
import { randomFrom } from './random.js';
import { printedSeed } from './seed.js';
import { ask, rowOf } from './talk.js';

/** A fifth of what is promised, which two busy cores do in half a minute; half of them leave. */
const requests = 2_000;
const atOnce = 40;
const pieces = 12;

const people = ['ann', 'bob'] as const;
type Person = (typeof people)[number];
const keys = [
  { key: 'sk-ann', tenant: 'acme', user: 'ann' },
  { key: 'sk-bob', tenant: 'other', user: 'bob' },
];

const seed = printedSeed();
let machine: TestMachine;
let book: LogBook;
const ledger: LedgerRow[] = [];

beforeAll(async () => {
  machine = await startTestMachine({
    engine: 'stand-in',
    training: 'stand-in',
    keys,
    pace: { tokenMs: 2, answerTokens: pieces },
  });
  book = await LogBook.open(machine);
});

afterAll(async () => {
  await book?.close();
  await machine?.stop();
});

const openFiles = () => readdirSync(`/proc/${String(machine.pid('gateway'))}/fd`).length;

/** Asks, and, if its lot says so, leaves: before the head of the answer, or after some piece of it. */
async function askAndMaybeLeave(number: number): Promise<void> {
  const random = randomFrom(seed * 10_000 + number);
  const controller = new AbortController();
  const person = random.pick(people);
  const leaves = random.below(2) === 0;
  let left = leaves ? random.below(pieces) : -1;
  const signals = [controller.signal, ...(left === 0 ? [AbortSignal.timeout(random.below(8))] : [])];
  const heard = await ask(machine.gateway, {
    messages: [{ role: 'user', content: `Number ${String(number)}, please describe yourself` }],
    stream: random.below(8) > 0,
    headers: { authorization: `Bearer sk-${person}` },
    signal: AbortSignal.any(signals),
    onText: () => {
      left -= 1;
      if (left === 0) controller.abort();
    },
  });
  ledger.push(rowOf(person, heard));
}

/** Tenants of the stored turns, by who asked. */
async function tenantsBy(person: Person): Promise<Set<string>> {
  const own = new Set(ledger.filter(({ client, turn }) => client === person && turn !== '').map(({ turn }) => turn));
  const { opened } = await book.read();
  return new Set(opened.filter(({ message }) => own.has(message.turn)).map(({ message }) => message.tenant));
}

async function nothingInHand(): Promise<boolean> {
  const { running } = await engineCounts(machine.engine);
  return running === 0 && (await metric(machine, 'gateway', 'backtalk_gateway_requests_in_hand')) === 0;
}

it('clients that leave an answer that would take a minute free the engine at once', async () => {
  await setEngine(machine.engine, { tokenMs: 100, answerTokens: 600 });
  const { cancelled } = await engineCounts(machine.engine);
  const leavers = Array.from({ length: 20 }, async (_, at) => {
    const controller = new AbortController();
    const headers = { authorization: 'Bearer sk-ann' };
    const messages = [{ role: 'user' as const, content: `A long story, the ${String(at)}th` }];
    const { signal } = controller;
    const heard = await ask(machine.gateway, { messages, headers, signal, onText: () => controller.abort() });
    ledger.push(rowOf('ann', heard));
  });
  await Promise.all(leavers);
  await until(nothingInHand, { what: 'Nothing is in hand', timeoutMs: 60_000, everyMs: 20 });
  expect((await engineCounts(machine.engine)).cancelled).toBe(cancelled + leavers.length);
  await setEngine(machine.engine, { tokenMs: 2, answerTokens: pieces });
});

it(`half of ${String(requests)} requests are left at any moment: nothing leaks, and no answer reaches another client`, async () => {
  await askAndMaybeLeave(0);
  const before = openFiles();
  let next = 1;
  const client = async () => {
    while (next < requests) {
      next += 1;
      await askAndMaybeLeave(next);
    }
  };
  await Promise.all(Array.from({ length: atOnce }, client));
  // Idle connections are kept on both sides of the gateway; one for each request that was left would be far more.
  const idle = async () => openFiles() <= before + 2 * atOnce && (await nothingInHand());
  await until(idle, { what: 'Everything is left behind', timeoutMs: 60_000, everyMs: 100 });
  const unfinished = ledger.filter(({ finished }) => !finished).length;
  expect(unfinished).toBeGreaterThan(requests / 4);
  expect(ledger.length - unfinished).toBeGreaterThan(requests / 4);
  expect(machine.log('gateway')).not.toMatch(/MaxListenersExceeded|unhandled/i);
  expect(await audited(book, ledger)).toEqual([]);
  const [anns, bobs] = await Promise.all(people.map(tenantsBy));
  expect([anns?.size, bobs?.size]).toEqual([1, 1]);
  expect(anns).not.toEqual(bobs);
});
