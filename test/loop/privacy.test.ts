import { until } from '@backtalk/kit/testing';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { metricsOf, type HealthName } from './controls.js';
import { LogBook } from './fact-log.js';
import { startTestMachine, type TestMachine } from './machine.js';
import { ask, type Message } from './talk.js';

/** No word of any language, and found whole wherever it goes. */
const canary = 'zqxcanaryvwk';
const key = `sk-${canary}-key`;
const authorization = { authorization: `Bearer ${key}` };
const names: readonly HealthName[] = ['gateway', 'collector', 'judge', 'trainer', 'publisher', 'loader'];

let machine: TestMachine;
let book: LogBook;

beforeAll(async () => {
  machine = await startTestMachine({
    engine: 'stand-in',
    training: 'stand-in',
    keys: [{ key, tenant: `${canary}-tenant`, user: `${canary}-user` }],
    environment: {
      all: { BACKTALK_LOG_LEVEL: 'debug' },
      trainer: { BACKTALK_RECIPE_SET: 'effective=2,effectiveMin=2' },
    },
  });
  book = await LogBook.open(machine);
});

afterAll(async () => {
  await book?.close();
  await machine?.stop();
});

async function converse(number: number): Promise<void> {
  const messages: Message[] = [
    { role: 'system', content: `${canary} in the system prompt` },
    { role: 'user', content: `${canary} number ${String(number)}, what is it?` },
  ];
  const headers = { ...authorization, 'x-session-id': `${canary}-session-${String(number)}` };
  const first = await ask(machine.gateway, { messages, headers });
  const correction = `Too long, ${canary}. Answer in one short sentence about ${canary}.`;
  const next: Message[] = [
    ...messages,
    { role: 'assistant', content: first.text },
    { role: 'user', content: correction },
  ];
  await ask(machine.gateway, { messages: next, headers });
  const feedback = JSON.stringify({ turn_id: first.turn, score: -1, comment: `${canary} comment`, correction: canary });
  const json = { ...authorization, 'content-type': 'application/json' };
  await fetch(`${machine.gateway}/v1/feedback`, { method: 'POST', headers: json, body: feedback });
}

/** Requests that are refused, each with the canary in the part that is at fault. */
async function refusals(): Promise<string[]> {
  const chat = { model: 'backtalk', messages: [{ role: 'user', content: canary }] };
  const bodies: unknown[] = [
    `{"model": "${canary}`,
    { ...chat, messages: [{ role: 'user', content: `${canary} `.repeat(20_000) }] },
    { ...chat, messages: [{ role: canary, content: canary }] },
    {
      ...chat,
      messages: [{ role: 'user', content: [{ type: 'image_url', image_url: { url: `https://${canary}.example` } }] }],
    },
    { ...chat, temperature: canary },
  ];
  const sent = bodies.map(async (body) => {
    const response = await fetch(`${machine.gateway}/v1/chat/completions`, {
      method: 'POST',
      headers: { ...authorization, 'content-type': 'application/json' },
      body: typeof body === 'string' ? body : JSON.stringify(body),
    });
    expect(response.ok).toBe(false);
    return response.text();
  });
  const wrongKey = await fetch(`${machine.gateway}/v1/models`, { headers: { authorization: `Bearer ${canary}` } });
  expect(wrongKey.status).toBe(401);
  return [...(await Promise.all(sent)), await wrongKey.text()];
}

it('what people say, and who they are, stands in no log line, no metric and no error body', async () => {
  for (let number = 0; number < 3; number += 1) await converse(number);
  await until(async () => (await book.stable()) !== 'backtalk-v0', {
    what: 'A version',
    timeoutMs: 60_000,
    everyMs: 100,
  });
  const { judged } = await book.read();
  expect(judged.some(({ message }) => message.hint.includes(canary))).toBe(true);
  const errors = await refusals();
  const metrics = await Promise.all(names.map((name) => metricsOf(machine, name)));
  const where = { errors: errors.join('\n'), metrics: metrics.join('\n'), logs: machine.logs() };
  for (const [place, text] of Object.entries(where)) {
    expect(text.length, place).toBeGreaterThan(0);
    const found = text.split('\n').filter((line) => line.toLowerCase().includes(canary));
    expect(found, place).toEqual([]);
  }
});
