// What every engine owes us that speaks vLLM's dialect: shapes, invariants, errors. One suite for all of them.
import { TemporaryDirectory, until } from '@backtalk/kit/testing';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { answersIn, get, post, stream, type Answer, type ModelList, type Refusal } from './engine-wire.js';
import { baseName, lengthMax, modelFolder, type RunningEngine } from './engines.js';
import { writeSmallAdapter } from './small-adapter.js';

const messages = [{ role: 'user', content: 'Name three rivers of Europe.' }];
const capture = { return_token_ids: true, logprobs: true };
const plain = { model: baseName, messages, temperature: 1, top_p: 1, max_tokens: 12, ...capture };
const greedy = { ...plain, temperature: 0 };

export function holdEngineContract(name: string, start: () => Promise<RunningEngine>): void {
  describe(`the contract of an engine: ${name}`, () => {
    const directory = new TemporaryDirectory('contract');
    let engine: RunningEngine;
    beforeAll(async () => {
      engine = await start();
      // The first logprobs may have to be compiled.
      await post(engine.url, '/v1/chat/completions', { ...greedy, max_tokens: 1 });
    }, 1_800_000);
    afterAll(async () => {
      await engine?.stop();
      directory.remove();
    });
    const url = () => engine.url;
    holdShapes(url);
    holdScores(url);
    holdScoresBesideAnswers(url);
    holdErrors(url);
    holdAdapters(url, directory);
    holdCancelling(url);
  });
}

function ids(answer: Answer | undefined): readonly number[] {
  return answer?.choices[0]?.token_ids ?? [];
}

function logprobs(answer: Answer | undefined): number[] {
  return (answer?.choices[0]?.logprobs?.content ?? []).map(({ logprob }) => logprob);
}

function holdShapes(url: () => string): void {
  it('answers whole with ids, logprobs and usage that count the same', async () => {
    const { status, body } = await post<Answer>(url(), '/v1/chat/completions', plain);
    expect(status).toBe(200);
    expect(body.prompt_token_ids?.length).toBe(body.usage?.prompt_tokens);
    expect(ids(body)).toHaveLength(body.usage?.completion_tokens ?? -1);
    expect(logprobs(body)).toHaveLength(ids(body).length);
    expect(logprobs(body).every((value) => value <= 0 && value > -100)).toBe(true);
    expect(['stop', 'length']).toContain(body.choices[0]?.finish_reason);
  });

  it('streams the prompt’s ids first, every token’s id after it, the finish reason with the last, usage, and [DONE]', async () => {
    const events = await stream(url(), { ...greedy, stream_options: { include_usage: true } });
    expect(events.at(-1)).toBe('[DONE]');
    const chunks = answersIn(events);
    const usage = chunks.at(-1);
    expect(usage?.choices).toEqual([]);
    expect(chunks[0]?.choices[0]?.delta?.role).toBe('assistant');
    expect(chunks[0]?.prompt_token_ids).toHaveLength(usage?.usage?.prompt_tokens ?? -1);
    const spoken = chunks.slice(0, -1);
    expect(spoken.flatMap(ids)).toHaveLength(usage?.usage?.completion_tokens ?? -1);
    expect(spoken.flatMap(logprobs)).toHaveLength(usage?.usage?.completion_tokens ?? -1);
    expect(spoken.filter(({ choices }) => choices[0]?.finish_reason).length).toBe(1);
    expect(spoken.at(-1)?.choices[0]?.finish_reason).toBe('length');
  });

  it('says the same streamed and whole, at temperature 0', async () => {
    const { body } = await post<Answer>(url(), '/v1/chat/completions', greedy);
    const chunks = answersIn(await stream(url(), greedy));
    expect(chunks.flatMap(ids)).toEqual(ids(body));
    expect(chunks.map(({ choices }) => choices[0]?.delta?.content ?? '').join('')).toBe(
      body.choices[0]?.message?.content,
    );
  });

  it('tokenizes a conversation into the ids that it prompts with', async () => {
    const { body } = await post<Answer>(url(), '/v1/chat/completions', { ...greedy, max_tokens: 1 });
    const { body: said } = await post<{ tokens: number[] }>(url(), '/tokenize', { model: baseName, messages });
    expect(said.tokens).toEqual(body.prompt_token_ids);
  });

  it('serves its health, its models and its load', async () => {
    expect((await get(url(), '/health')).status).toBe(200);
    const { body } = await get<ModelList>(url(), '/v1/models');
    expect(body.data[0]).toMatchObject({ id: baseName, parent: null, max_model_len: lengthMax });
    expect((await get<string>(url(), '/metrics')).body).toMatch(/^vllm:num_requests_running\S* \d/m);
  });
}

function holdScores(url: () => string): void {
  it('scores given ids as it scored them when it sampled them', async () => {
    const { body } = await post<Answer>(url(), '/v1/chat/completions', { ...plain, seed: 7 });
    const prompt = [...(body.prompt_token_ids ?? []), ...ids(body)];
    const request = { model: baseName, prompt, max_tokens: 1, prompt_logprobs: 0, temperature: 1 };
    const { body: scored } = await post<Answer>(url(), '/v1/completions', request);
    const entries = scored.choices[0]?.prompt_logprobs ?? [];
    expect(entries).toHaveLength(prompt.length);
    expect(entries[0]).toBeNull();
    const answer = prompt.map((id, at) => entries[at]?.[String(id)]?.logprob ?? Number.NaN).slice(-ids(body).length);
    const gaps = answer.map((value, at) => Math.abs(value - (logprobs(body)[at] ?? Number.NaN)));
    expect(Math.max(...gaps)).toBeLessThan(1e-3);
  });
}

/** A judge and a gate ask for scores of the engine that answers clients. */
function holdScoresBesideAnswers(url: () => string): void {
  it('scores given ids while it answers others, and lives on', async () => {
    const talking = Array.from({ length: 3 }, () => stream(url(), { ...plain, max_tokens: 32, ignore_eos: true }));
    const prompt = Array.from({ length: 64 }, (_, at) => 100 + at);
    const request = { model: baseName, prompt, max_tokens: 1, prompt_logprobs: 0, temperature: 1 };
    const scored = await Promise.all([1, 2].map(() => post<Answer>(url(), '/v1/completions', request)));
    expect(scored.map(({ status }) => status)).toEqual([200, 200]);
    for (const events of await Promise.all(talking)) expect(answersIn(events).flatMap(ids)).toHaveLength(32);
    expect((await get(url(), '/health')).status).toBe(200);
  });
}

function holdErrors(url: () => string): void {
  const long = 'word '.repeat(2 * lengthMax);
  const cases: readonly (readonly [string, unknown, number, Partial<Refusal['error']>])[] = [
    ['an unknown model', { ...plain, model: 'nobody' }, 404, { type: 'NotFoundError', param: 'model' }],
    ['broken JSON', '{"model": ', 400, { type: 'Bad Request' }],
    ['a missing field', { model: baseName }, 400, { type: 'Bad Request' }],
    ['no tokens', { ...plain, max_tokens: 0 }, 400, {}],
    [
      'a prompt above the context',
      { ...plain, messages: [{ role: 'user', content: long }] },
      400,
      { param: 'input_tokens' },
    ],
  ];
  it.each(cases)('refuses %s', async (_what, body, status, error) => {
    const refused = await post<Refusal>(url(), '/v1/chat/completions', body);
    expect(refused.status).toBe(status);
    expect(refused.body.error).toMatchObject({ code: status, message: expect.any(String) as string, ...error });
  });

  it('refuses an unknown path without an error object', async () => {
    expect(await get(url(), '/nothing')).toEqual({ status: 404, body: { detail: 'Not Found' } });
  });
}

function holdAdapters(url: () => string, directory: TemporaryDirectory): void {
  const load = (lora_name: string, lora_path: string) => post(url(), '/v1/load_lora_adapter', { lora_name, lora_path });
  const unload = (lora_name: string) => post(url(), '/v1/unload_lora_adapter', { lora_name });
  const chat = (model: string) => post<Answer>(url(), '/v1/chat/completions', { ...greedy, model });

  it('loads adapters by name beside each other, never twice, and serves them until they are unloaded', async () => {
    const [one, two] = [1, 2].map((seed) =>
      writeSmallAdapter({ model: modelFolder, baseName, folder: directory.join(`adapter-${String(seed)}`), seed }),
    );
    expect((await load('one', one ?? '')).status).toBe(200);
    expect((await load('two', two ?? '')).status).toBe(200);
    expect((await load('one', two ?? '')).status).toBe(400);
    const { body: models } = await get<ModelList>(url(), '/v1/models');
    expect(models.data.filter(({ parent }) => parent === baseName).map(({ id }) => id)).toEqual(['one', 'two']);
    const [base, first, second] = await Promise.all([chat(baseName), chat('one'), chat('two')]);
    const heads = [base, first, second].map(({ body }) => logprobs(body)[0]);
    expect(new Set(heads).size).toBe(3);
    expect((await unload('one')).status).toBe(200);
    expect((await chat('one')).status).toBe(404);
    expect((await chat('two')).status).toBe(200);
    expect((await unload('two')).status).toBe(200);
  });

  it('refuses what is no adapter, and lives on', async () => {
    const high = writeSmallAdapter({
      model: modelFolder,
      baseName,
      folder: directory.join('high'),
      seed: 3,
      rank: 128,
    });
    expect((await load('none', directory.join('nothing'))).status).toBe(404);
    expect((await load(baseName, high)).status).toBe(400);
    expect((await load('high', high)).status).toBe(500);
    expect((await unload('none')).status).toBe(404);
    expect((await chat(baseName)).status).toBe(200);
  });
}

function holdCancelling(url: () => string): void {
  it('stops working for a client that has gone', async () => {
    const controller = new AbortController();
    const response = await fetch(`${url()}/v1/chat/completions`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ ...plain, max_tokens: 800, ignore_eos: true, stream: true }),
      signal: controller.signal,
    });
    const reader = response.body?.getReader();
    await reader?.read();
    controller.abort();
    const idle = async () =>
      /^vllm:num_requests_running\S* 0(\.0)?$/m.test((await get<string>(url(), '/metrics')).body);
    await until(idle, { what: 'The engine is idle' });
  });
}
