import { chmodSync, rmSync, writeFileSync } from 'node:fs';
import { FakeClock, freePort, TemporaryDirectory, until } from '@backtalk/kit/testing';
import { afterAll, afterEach, beforeEach, describe, expect, it } from 'vitest';
import { z } from 'zod';
import { says, startScriptedModel, type Script, type Scripted, type ScriptedModel } from '../testing/scripted-model.js';
import { AskedModel, type AskedOptions } from './asked-model.js';
import { isSameModel, namedModel, scorerApi, userApi, type NamedModel } from './named-model.js';

const form = z.object({ words: z.string().max(20) });
const good = says({ words: 'Better.' });
const messages = [{ role: 'user', content: 'What do you say?' }] as const;
const key = 'sk-of-the-test-0123456789';
const folder = new TemporaryDirectory('asked-model');
const keyFile = folder.join('key');

let server: ScriptedModel;
let model: AskedModel | undefined;
let clock: FakeClock;

beforeEach(async () => {
  server = await startScriptedModel('reader', () => good, key);
  clock = new FakeClock();
  writeFileSync(keyFile, `${key}\n`, { mode: 0o600 });
});
afterEach(async () => {
  await model?.close();
  await server.stop();
  rmSync(keyFile);
});
afterAll(() => {
  folder.remove();
});

const named = (changed: Partial<NamedModel> = {}): NamedModel => ({
  url: server.url,
  model: 'reader',
  key,
  keyFile,
  keyOption: 'llm-key-file',
  ...changed,
});

/** Asks once; while it waits, the clock goes on, and the waits are noted. */
async function asked(script: Script, changed: Partial<NamedModel> = {}, options: AskedOptions = {}) {
  server.script = script;
  model = new AskedModel(named(changed), 'user', { clock, ...options });
  const startedAt = clock.now();
  let settled = false;
  const answer = model.ask(messages, form, { temperature: 0.7, seed: 5 }).finally(() => {
    settled = true;
  });
  answer.catch(() => undefined);
  await until(
    async () => {
      if (clock.waiting > 0) await clock.advance(1_000);
      return settled;
    },
    { what: 'The answer', everyMs: 1 },
  );
  return { answer, waitedMs: clock.now() - startedAt, counts: model.counts };
}

const first =
  (one: Scripted | undefined, then: Scripted = good): Script =>
  (_, number) =>
    number === 1 ? one : then;

describe('a model that is asked for an object', () => {
  it('a reply is read out of thoughts, a fence and a sentence around it', async () => {
    const text = '<think>{"words": "no"}</think>\nHere it is:\n```json\n{"words": "Better."}\n```';
    expect(await (await asked(() => says(text))).answer).toEqual({ words: 'Better.' });
    expect(server.heard).toHaveLength(1);
    expect(server.heard[0]).toMatchObject({ model: 'reader', seed: 5, temperature: 0.7, messages });
  });

  it.each<[string, Scripted]>([
    ['empty', says('  ')],
    ['empty', says('', { message: { content: null } })],
    ['refusal', says("I'm sorry, but I can't play that.")],
    ['refusal', says('', { message: { refusal: 'No.' } })],
    ['refusal', says('', { finish: 'content_filter' })],
    ['overlong', says('{"words": "and', { finish: 'length' })],
    ['overlong', says({ words: 'x'.repeat(21) })],
    ['overlong', says('x'.repeat(8_001))],
    ['malformed', says('Better.')],
    ['malformed', says({ words: 7 })],
    ['malformed', says('', { message: { content: ['no text'] } })],
    ['malformed', { body: { choices: [{ message: { content: 7 } }, {}] } }],
  ])('a reply that is %s is counted and asked for once more, with another seed (%#)', async (kind, reply) => {
    const { answer, counts } = await asked(first(reply));
    expect(await answer).toEqual({ words: 'Better.' });
    expect(counts).toMatchObject({ replies: 2, [kind]: 1, retries: 0, failed: 0 });
    expect(server.heard.map(({ seed }) => seed)).toEqual([5, 6]);
  });

  it('a model that writes in no form is not asked again and again', async () => {
    const { answer, counts } = await asked(() => says('Better.'));
    expect(await answer).toBeUndefined();
    expect(counts).toMatchObject({ replies: 2, malformed: 2 });
    expect(server.heard).toHaveLength(2);
  });
});

describe('an endpoint that fails', () => {
  it('an endpoint that is overloaded is left alone for as long as it asks', async () => {
    const { answer, waitedMs, counts } = await asked(first({ status: 429, headers: { 'retry-after': '7' } }));
    expect(await answer).toEqual({ words: 'Better.' });
    expect(waitedMs).toBe(7_000);
    expect(counts).toMatchObject({ retries: 1, failed: 0 });
  });

  it('an endpoint that asks to be left alone for an hour is away at once', async () => {
    const { answer } = await asked(() => ({ status: 429, headers: { 'retry-after': '3600' } }));
    await expect(answer).rejects.toMatchObject({
      code: 'llm_away',
      message: `The user's model reader at ${server.url} takes no request now and asks to wait 3600 s.`,
    });
    expect(server.heard).toHaveLength(1);
  });

  it.each<[string, Script, RegExp]>([
    ['fails', () => ({ status: 500, body: {} }), /fails with status 500 \(5 tries\)\.$/],
    ['hangs', () => undefined, /did not answer within 0\.05 s \(5 tries\)\.$/],
    ['writes no JSON', () => ({ body: 'no object' }), /answers with no chat completion \(5 tries\)\.$/],
  ])(
    'an endpoint that %s is asked five times, with waits between, and is away in one line',
    async (_, script, words) => {
      const { answer, waitedMs, counts } = await asked(script, {}, { deadlineMs: 50 });
      await expect(answer).rejects.toMatchObject({ code: 'llm_away', retry: 'later' });
      await expect(answer).rejects.toThrow(words);
      await expect(answer).rejects.toThrow(/^The user's model reader at http[^\n]+$/);
      expect(server.heard).toHaveLength(5);
      expect(waitedMs).toBeGreaterThanOrEqual(15_000);
      expect(counts).toMatchObject({ replies: 0, retries: 4, failed: 1 });
    },
  );

  it('an endpoint that fails once is asked again, and nothing is lost', async () => {
    const { answer, counts } = await asked(first({ status: 500, body: {} }));
    expect(await answer).toEqual({ words: 'Better.' });
    expect(counts).toMatchObject({ replies: 1, retries: 1, failed: 0 });
  });

  it('an endpoint that is gone is away in one line', async () => {
    const url = `http://127.0.0.1:${String(await freePort())}/v1`;
    const { answer } = await asked(() => good, { url });
    await expect(answer).rejects.toThrow(
      `The user's model reader at ${url} cannot be reached (ECONNREFUSED) (5 tries).`,
    );
  });

  it.each<[string, Partial<NamedModel>, RegExp]>([
    ['refuses a key', { key: 'sk-another' }, /refuses the key of .*key\.$/],
    ['asks for a key', { key: '', keyFile: undefined }, /asks for a key \(--llm-key-file FILE\)\.$/],
  ])('an endpoint that %s ends the run at its first word, and the key is not said', async (_, changed, words) => {
    const { answer, waitedMs } = await asked(() => good, changed);
    await expect(answer).rejects.toMatchObject({ code: 'llm_refused', retry: 'never' });
    await expect(answer).rejects.toThrow(words);
    await expect(answer).rejects.not.toThrow('sk-');
    expect(waitedMs).toBe(0);
  });

  it('an endpoint that serves the model no more ends the run', async () => {
    const { answer } = await asked(() => ({ status: 404, body: { error: { message: 'gone' } } }));
    await expect(answer).rejects.toMatchObject({ code: 'llm_refused' });
  });

  it('a stop ends a wait at once', async () => {
    const stop = new AbortController();
    server.script = () => ({ status: 500, body: {} });
    model = new AskedModel(named(), 'user', { clock });
    const answer = model.ask(messages, form, { temperature: 0, seed: 1, signal: stop.signal });
    await until(() => clock.waiting > 0, { what: 'A wait before the next try' });
    stop.abort();
    await expect(answer).rejects.toThrow();
    expect(server.heard).toHaveLength(1);
  });
});

describe('what an endpoint does not take', () => {
  const refusing =
    (field: string, param: string | undefined): Script =>
    (body) =>
      field in body ? { status: 400, body: { error: { message: 'no', param } } } : good;

  it.each([
    ['seed', 'seed'],
    ['seed', undefined],
    ['temperature', 'temperature'],
  ])('an endpoint that refuses a %s (named: %s) is asked without one from then on', async (field, param) => {
    const { answer, waitedMs } = await asked(refusing(field, param));
    expect(await answer).toEqual({ words: 'Better.' });
    expect(waitedMs).toBe(0);
    expect(model?.takesSeed).toBe(field !== 'seed');
    await model?.ask(messages, form, { temperature: 0.7, seed: 6 });
    expect(server.heard.map((body) => field in body)).toEqual([true, false, false]);
  });

  it('an endpoint that wants the newer name of the length gets it', async () => {
    const { answer } = await asked(refusing('max_tokens', 'max_tokens'));
    expect(await answer).toEqual({ words: 'Better.' });
    expect(server.heard.at(-1)).toHaveProperty('max_completion_tokens');
  });

  it('an endpoint that refuses the messages is not asked on, and keeps its seed for others', async () => {
    const refusal = { status: 400, body: { error: { message: 'no', param: 'messages' } } };
    const { answer } = await asked(() => refusal);
    await expect(answer).rejects.toThrow(/refuses the request as it stands\.$/);
    expect(server.heard).toHaveLength(1);
    server.script = (body) => ('seed' in body || 'temperature' in body ? { status: 400, body: {} } : refusal);
    await expect(model?.ask(messages, form, { temperature: 0, seed: 1 })).rejects.toThrow();
    expect(model?.takesSeed).toBe(true);
  });
});

describe('a model that flags name', () => {
  it('a named model is the only one that is served there, and brings the key of its file', async () => {
    const found = await namedModel({ url: server.url, keyFile }, userApi);
    expect(found).toEqual(named());
    expect(await namedModel({}, scorerApi)).toBeUndefined();
  });

  it.each([
    [{ model: 'reader' }, "--llm-model 'reader' is not usable without --llm-url."],
    [{ keyFile: 'FILE' }, "--llm-key-file 'FILE' is not usable without --llm-url."],
    [
      { url: 'reader' },
      /^--llm-url 'reader' is not the address of an OpenAI-compatible API, such as https:\/\/host\/v1\.$/,
    ],
    [{ url: 'https://me:sk-1@host/v1?key=sk-2' }, /^--llm-url '…' is not .*--llm-key-file\.$/],
  ])('a model that cannot be asked as the flags say is wrong use (%#)', async (said, words) => {
    const refused = namedModel(said, userApi);
    await expect(refused).rejects.toThrow(words);
    await expect(refused).rejects.toMatchObject({ code: 'bad_argument' });
  });

  it('a key that others can read is not sent', async () => {
    chmodSync(keyFile, 0o644);
    const refused = namedModel({ url: server.url, keyFile }, scorerApi);
    await expect(refused).rejects.toThrow(/^--scorer-key-file .*can be read by others \(chmod 600 it\)\.$/);
  });

  it('a model is refused in one line where it is not served, or nothing answers', async () => {
    const other = namedModel({ url: server.url, model: 'writer', keyFile }, scorerApi);
    await expect(other).rejects.toThrow(
      /^--scorer-url http\S+ cannot score answers: it has no model writer, but reader\.$/,
    );
    const url = `http://127.0.0.1:${String(await freePort())}/v1`;
    await expect(namedModel({ url }, userApi)).rejects.toThrow(
      /^--llm-url \S+ cannot play the user: it does not answer/,
    );
  });

  it('the same model is known by another folder of a hub, and at another address', () => {
    expect(isSameModel(named({ model: 'Qwen/Qwen3-4B' }), named({ url: 'https://e/v1', model: 'qwen3-4b' }))).toBe(
      true,
    );
    expect(isSameModel(named({ model: 'qwen3-4b' }), named({ model: 'qwen3-8b' }))).toBe(false);
  });
});
