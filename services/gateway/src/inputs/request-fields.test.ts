import OpenAI from 'openai';
import type { EngineDialect } from '@backtalk/dialects';
import { until } from '@backtalk/kit/testing';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import {
  ready,
  startGateway,
  startLeasedEngine,
  startSurroundings,
  type LeasedEngine,
  type StartedGateway,
  type Surroundings,
} from '../testing/started-gateway.js';

let around: Surroundings;
let started: StartedGateway;
let leased: LeasedEngine;
let heard: Record<string, unknown>[];

const messages = [{ role: 'user' as const, content: 'Hello there' }];

beforeAll(async () => {
  around = await startSurroundings();
  started = await startGateway(around);
});

afterAll(async () => {
  await started.gateway.stop();
  await around.stop();
});

beforeEach(() => {
  heard = [];
});

function post(fields: object) {
  const client = new OpenAI({ baseURL: started.url, apiKey: 'none needed', maxRetries: 0 });
  return client.post<{ choices?: unknown }>('/chat/completions', { body: { model: 'backtalk', messages, ...fields } });
}

/** What agents and their libraries send beside the conversation. */
const ofAgents = {
  store: false,
  metadata: { run: '7' },
  stream: false,
  parallel_tool_calls: true,
  tool_choice: 'auto',
  tools: [{ type: 'function', function: { name: 'read', parameters: { type: 'object' }, strict: true } }],
  reasoning_effort: 'low',
  service_tier: 'auto',
  user: 'ann',
  safety_identifier: 'hashed',
  prompt_cache_key: 'k',
  prompt_cache_retention: '24h',
  max_completion_tokens: 5,
  response_format: { type: 'text' },
  seed: 4,
  stop: ['\n'],
  logit_bias: {},
  frequency_penalty: 0,
  n: 1,
  verbosity: 'low',
  modalities: ['text'],
  functions: null,
};
const functions = [{ name: 'read', parameters: { type: 'object' } }];

describe.each<EngineDialect>(['builtin', 'vllm', 'sglang', 'openai'])('fields for an engine of %s', (dialect) => {
  beforeAll(async () => {
    leased = await startLeasedEngine(around, `engine-${dialect}`, { dialect });
    leased.engine.settings.heard = (body) => heard.push(body as Record<string, unknown>);
    await until(async () => (await started.metric('engines_ready')) === 1);
    await ready(started);
  });

  afterAll(async () => {
    await leased.stop();
    await until(async () => (await started.metric('engines_ready')) === 0);
  });

  it('agents’ requests are answered; what the engine has no use for does not reach it', async () => {
    await expect(post(ofAgents)).resolves.toHaveProperty('choices');
    const [body = {}] = heard;
    expect(body).toMatchObject({ tool_choice: 'auto', reasoning_effort: 'low', max_completion_tokens: 5, seed: 4 });
    for (const field of ['store', 'metadata', 'user', 'safety_identifier', 'prompt_cache_key', 'service_tier'])
      expect(body).not.toHaveProperty(field);
  });

  it('a switch for thoughts reaches the template under whichever name, where an engine takes it', async () => {
    const switches = [
      { enable_thinking: false },
      { thinking: { type: 'disabled' } },
      { reasoning: { effort: 'none' } },
    ];
    for (const one of switches) await post(one);
    const expected = dialect === 'openai' ? undefined : { enable_thinking: false };
    expect(heard.map((body) => body['chat_template_kwargs'])).toEqual(switches.map(() => expected));
    for (const name of switches.flatMap(Object.keys)) for (const body of heard) expect(body).not.toHaveProperty(name);
  });

  it('what the client leaves open is filled in for engines of one’s own alone', async () => {
    await post({});
    await post({ top_p: 0, top_k: 3 });
    const plain = dialect === 'openai' ? {} : { top_k: -1, min_p: 0 };
    const [first = {}, second = {}] = heard;
    expect(Object.fromEntries(Object.entries(first).filter(([name]) => /^(?:top_k|min_p)$/.test(name)))).toEqual(plain);
    expect(second).toMatchObject({ top_k: 3 });
    // No engine takes 0.
    expect(second['top_p']).toBeGreaterThan(0);
    expect(second['top_p']).toBeLessThan(0.001);
  });

  it.each([
    { modalities: ['text', 'audio'] },
    { web_search_options: {} },
    { rid: 'mine' },
    { lora_path: '/etc' },
    { kv_transfer_params: { remote_host: '10.0.0.1' } },
    { chat_template: '{{ 6 * 7 }}' },
    { chat_template_kwargs: { chat_template: '{{ 6 * 7 }}' } },
    { whatever: 1 },
  ])('answers %j with 400 that names it, and asks no engine', async (field) => {
    const refusal: unknown = await post(field).then(
      () => undefined,
      (error: unknown) => error,
    );
    expect(refusal).toBeInstanceOf(OpenAI.BadRequestError);
    expect(refusal).toMatchObject({
      code: 'unsupported_parameter',
      param: expect.stringContaining(Object.keys(field)[0] ?? '') as string,
    });
    expect(heard).toEqual([]);
  });

  it(dialect === 'openai' ? 'passes former names of tools on' : 'answers former names of tools with 400', async () => {
    if (dialect === 'openai') {
      await post({ functions });
      expect(heard).toMatchObject([{ functions }]);
    } else await expect(post({ functions })).rejects.toMatchObject({ status: 400, param: 'functions' });
  });

  const vllms = { ignore_eos: false, bad_words: ['x'], chat_template_kwargs: { enable_thinking: false } };
  const asksForVllm = dialect === 'vllm' || dialect === 'builtin';
  it(
    asksForVllm ? 'passes on what this dialect has beside' : 'answers what another dialect has beside with 400',
    async () => {
      if (asksForVllm) {
        await post(vllms);
        expect(heard).toMatchObject([vllms]);
      } else {
        await expect(post(vllms)).rejects.toMatchObject({ status: 400, code: 'unsupported_parameter' });
        expect(heard).toEqual([]);
      }
    },
  );
});
