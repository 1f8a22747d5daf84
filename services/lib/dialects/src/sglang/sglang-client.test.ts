import { createServer, type IncomingMessage, type Server } from 'node:http';
import { asBacktalkError } from '@backtalk/kit';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { CaptureAccumulator } from '../capture/accumulator.js';
import { judgeCapture } from '../capture/invariants.js';
import { createEngineClient } from '../create-engine-client.js';
import type { EngineClient, EngineFrame, RawObject } from '../engine-client.js';
import { engineErrors } from '../errors.js';

/** What the engine is to answer, by path; and what it was asked. */
let answers: Record<string, { status?: number; body: unknown }>;
let asked: { path: string; body: RawObject }[];
let server: Server;
let client: EngineClient;
let url: string;

const deadline = { deadlineMs: 60_000 };
const messages = [{ role: 'user', content: 'Hello' }];

/** As SGLang 0.5.15 answers: ids and logprobs in `meta_info`, each beside its text. */
const chatAnswer = {
  id: 'a1',
  object: 'chat.completion',
  created: 1,
  model: 'base',
  choices: [
    {
      index: 0,
      message: { role: 'assistant', content: 'Hi.', reasoning_content: null, tool_calls: null },
      logprobs: { content: [{ token: 'Hi', logprob: -0.5, bytes: [72, 105], top_logprobs: [] }] },
      finish_reason: 'stop',
      matched_stop: 2,
      prompt_token_ids: [1, 9, 4],
      meta_info: {
        id: 'a1',
        finish_reason: { type: 'stop', matched: 2 },
        prompt_tokens: 3,
        completion_tokens: 3,
        output_token_logprobs: [
          [-0.5, 11, 'Hi'],
          [-0.25, 12, '.'],
          [-0.125, 2, null],
        ],
      },
    },
  ],
  usage: { prompt_tokens: 3, completion_tokens: 3, total_tokens: 6 },
  metadata: { weight_version: 'default' },
};

async function bodyOf(request: IncomingMessage): Promise<RawObject> {
  let text = '';
  for await (const chunk of request) text += String(chunk);
  return text === '' ? {} : (JSON.parse(text) as RawObject);
}

beforeEach(async () => {
  answers = {
    '/v1/models': {
      body: {
        object: 'list',
        data: [
          { id: 'base', max_model_len: 4_096 },
          { id: 'v1', parent: 'base' },
        ],
      },
    },
    '/v1/chat/completions': { body: chatAnswer },
  };
  asked = [];
  server = createServer((request, response) => {
    const path = request.url ?? '';
    void bodyOf(request).then((body) => {
      asked.push({ path, body });
      const { status = 200, body: answer } = answers[path] ?? { status: 404, body: { detail: 'Not Found' } };
      response.writeHead(status, { 'content-type': 'application/json' });
      response.end(JSON.stringify(answer));
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const address = server.address();
  const port = typeof address === 'object' && address !== null ? address.port : 0;
  url = `http://127.0.0.1:${port}`;
  client = createEngineClient({ dialect: 'sglang', url });
});

afterEach(async () => {
  await client.close();
  server.closeAllConnections();
  server.close();
});

const lastAsked = () => asked.at(-1)?.body ?? {};
const codeOf = (outcome: Promise<unknown>) =>
  outcome.then(
    () => 'none',
    (error: unknown) => asBacktalkError(error).code,
  );

describe('capture', () => {
  it('asks without a stream for ids and logprobs, and takes them from where SGLang puts them', async () => {
    const { capture } = await client.chat({ model: 'base', messages, top_logprobs: null }, deadline);
    expect(lastAsked()).toMatchObject({ model: 'base', stream: false, logprobs: true, return_meta_info: true });
    expect(lastAsked()).toMatchObject({ return_prompt_token_ids: true });
    expect(lastAsked()).not.toHaveProperty('top_logprobs');
    expect(capture).toMatchObject({ promptIds: [1, 9, 4], answerIds: [11, 12, 2], logprobs: [-0.5, -0.25, -0.125] });
    expect(judgeCapture(capture)).toEqual({ trainable: true, reasons: [] });
  });

  it('what was asked for the log’s sake stays out of the answer, and ids stand where other engines have them', async () => {
    const { raw } = await client.chat({ model: 'base', messages }, deadline);
    expect(JSON.parse(JSON.stringify(raw))).toEqual({
      ...JSON.parse(JSON.stringify({ ...chatAnswer, metadata: undefined })),
      prompt_token_ids: [1, 9, 4],
      choices: [
        { ...chatAnswer.choices[0], prompt_token_ids: undefined, meta_info: undefined, token_ids: [11, 12, 2] },
      ].map((choice) => JSON.parse(JSON.stringify(choice)) as unknown),
    });
  });

  it('the model’s own default penalty is never taken, since logprobs would be those of what it has changed', async () => {
    await client.chat({ model: 'base', messages }, deadline);
    expect(lastAsked()).toMatchObject({ repetition_penalty: 1 });
    await client.chat({ model: 'base', messages, repetition_penalty: 1.2 }, deadline);
    expect(lastAsked()).toMatchObject({ repetition_penalty: 1.2 });
  });

  it('a stream has the logprobs that a client asked for', async () => {
    const frames: EngineFrame[] = [];
    for await (const frame of client.chatStream({ model: 'base', messages, logprobs: true }, deadline))
      frames.push(frame);
    expect(JSON.stringify(frames[1]?.raw)).toContain('"logprob":-0.5');
  });

  it('a stream takes room for the whole answer that it is, and ends where there is none', async () => {
    let [taken, bytesMax] = [0, Infinity];
    const grow = (bytes: number): void => {
      if (taken + bytes > bytesMax) throw engineErrors.overloaded({ retryAfterSeconds: 1 });
      taken += bytes;
    };
    const options = { ...deadline, room: { grow, shrink: () => undefined } };
    const ask = async () => {
      for await (const _frame of client.chatStream({ model: 'base', messages }, options)) continue;
    };
    await ask();
    expect(taken).toBeGreaterThanOrEqual(JSON.stringify(chatAnswer).length);
    bytesMax = taken;
    expect(await codeOf(ask())).toBe('engine_overloaded');
  });

  it('streams the same as a few frames', async () => {
    const accumulator = new CaptureAccumulator();
    const frames: EngineFrame[] = [];
    for await (const frame of client.chatStream({ model: 'base', messages }, deadline)) {
      frames.push(frame);
      accumulator.add(frame);
    }
    const { capture } = await client.chat({ model: 'base', messages }, deadline);
    expect(accumulator.capture()).toEqual(capture);
    expect(frames.map(({ choice }) => choice)).toEqual([0, 0, 0, -1]);
    expect(frames.filter(({ finishReason }) => finishReason !== undefined)).toHaveLength(1);
    expect(frames.every(({ raw }) => raw['object'] === 'chat.completion.chunk')).toBe(true);
  });

  it('passes tool calls and thoughts on, whole', async () => {
    const [choice] = chatAnswer.choices;
    const call = {
      id: 'call_1',
      index: 0,
      type: 'function',
      function: { name: 'weather', arguments: '{"city":"Oslo"}' },
    };
    const message = { role: 'assistant', content: '', reasoning_content: 'Let me look.', tool_calls: [call] };
    answers['/v1/chat/completions'] = {
      body: { ...chatAnswer, choices: [{ ...choice, message, finish_reason: 'tool_calls' }] },
    };
    const accumulator = new CaptureAccumulator();
    for await (const frame of client.chatStream({ model: 'base', messages }, deadline)) accumulator.add(frame);
    const { toolCalls, reasoning, finishReason } = accumulator.capture();
    expect(toolCalls[0]?.function).toEqual({ name: 'weather', arguments: '{"city":"Oslo"}' });
    expect([reasoning, finishReason]).toEqual(['Let me look.', 'tool_calls']);
  });

  it('an answer of a release that gives no ids is not trainable', async () => {
    const [choice] = chatAnswer.choices;
    const bare = { ...choice, prompt_token_ids: undefined, meta_info: undefined };
    answers['/v1/chat/completions'] = { body: { ...chatAnswer, choices: [bare] } };
    const { capture } = await client.chat({ model: 'base', messages }, deadline);
    expect(judgeCapture(capture).reasons).toEqual(['no_prompt_ids', 'no_token_ids']);
  });
});

const misfit = 'incompatible with the current LoRA memory pool configuration';

describe('adapters', () => {
  it('adapters are asked for behind the base’s name', async () => {
    answers['/v1/chat/completions'] = { body: { ...chatAnswer, model: 'base:v1' } };
    const { capture } = await client.chat({ model: 'v1', messages }, deadline);
    expect(lastAsked()).toMatchObject({ model: 'base:v1' });
    expect([capture.modelAtStart, capture.modelAtEnd]).toEqual(['v1', 'v1']);
    expect(asked.filter(({ path }) => path === '/v1/models')).toHaveLength(1);
  });

  it('adapters are loaded and unloaded by name', async () => {
    answers['/load_lora_adapter'] = { body: { success: true, loaded_adapters: { v1: '/adapters/v1' } } };
    answers['/unload_lora_adapter'] = { body: { success: true, loaded_adapters: {} } };
    await client.loadAdapter('v1', '/adapters/v1', deadline);
    expect(lastAsked()).toEqual({ lora_name: 'v1', lora_path: '/adapters/v1' });
    await client.unloadAdapter('v1', deadline);
    expect(lastAsked()).toEqual({ lora_name: 'v1' });
  });

  it.each([
    ['v1', 400, 'engine_failed'],
    ['v1', 500, 'engine_failed'],
    ['v2', 400, 'adapter_not_loaded'],
    ['v2', 500, 'adapter_not_loaded'],
  ])('an adapter %s that is not unloaded (status %i), where v1 alone is listed, is %s', async (name, status, code) => {
    answers['/unload_lora_adapter'] = { status, body: { success: false, error_message: 'it does not exist' } };
    expect(await codeOf(client.unloadAdapter(name, deadline))).toBe(code);
  });

  it.each([
    ['Failed to load LoRA adapter v1 because it is already loaded', 400, 'adapter_already_loaded'],
    ["Repo id must be in the form 'repo_name' or 'namespace/repo_name': '/adapters/v1'.", 400, 'adapter_path_missing'],
    [`LoRA adapter v1 with rank 128 is ${misfit}. Please ensure that the LoRA…`, 400, 'adapter_refused'],
    [`LoRA adapter v1 with rank 128 is ${misfit}. Please ensure that the LoRA…`, 200, 'adapter_refused'],
    ['LoRA is not enabled. Please set `--enable-lora` to enable LoRA.', 400, 'engine_unsupported'],
    ["'model.layers.0.self_attn.v_proj.lora_A.weight'", 400, 'adapter_refused'],
    ['CUDA out of memory. Tried to allocate 2.00 GiB', 400, 'engine_failed'],
    ['the scheduler is gone', 500, 'engine_failed'],
    ["Error while unloading LRU LoRA adapter 'v0': gone", 400, 'engine_failed'],
    ["Didn't find any LoRA adapters when trying to evict LRU LoRA adapter.", 400, 'engine_failed'],
  ])('adapters that are refused because %s (status %i) are %s', async (words, status, code) => {
    answers['/load_lora_adapter'] = { status, body: { success: false, error_message: words } };
    expect(await codeOf(client.loadAdapter('v1', '/adapters/v1', deadline))).toBe(code);
  });

  it('adapters cannot be had where the engine was started without them', async () => {
    expect(await codeOf(client.loadAdapter('v1', '/adapters/v1', deadline))).toBe('engine_unsupported');
  });
});

describe('an adapter that the engine has forgotten', () => {
  it.each([
    'Got LoRA adapter that has never been loaded: v1',
    'Failed to implicitly load LoRA adapter v1: no such folder',
    'The following requested LoRA adapters are not loaded: v1',
    'LoRA adapter v1 was requested, but LoRA is not enabled. Please launch the server with --enable-lora flag',
  ])(
    'an adapter of which it says “%s” is a model that it does not hold, and no fault of the request',
    async (words) => {
      answers['/v1/chat/completions'] = { status: 400, body: flat(words) };
      expect(await codeOf(client.chat({ model: 'v1', messages }, deadline))).toBe('model_not_found');
      answers['/generate'] = { status: 400, body: { error: { message: words } } };
      const probes = [{ promptIds: [1], answerIds: [2] }];
      expect(await codeOf(client.score(probes, { model: 'v1', ...deadline }))).toBe('model_not_found');
    },
  );
});

it('a refusal that repeats a conversation is not read by the conversation’s words', async () => {
  const said = 'Got LoRA adapter that has never been loaded';
  const refused = { status: 400, body: flat(`[{'type': 'missing', 'input': '${said}'}]`) };
  answers['/v1/chat/completions'] = refused;
  expect(await codeOf(client.chat({ model: 'base', messages }, deadline))).toBe('invalid_request');
  const vllm = createEngineClient({ dialect: 'vllm', url });
  answers['/v1/chat/completions'] = { status: 400, body: { error: { message: said } } };
  expect(await codeOf(vllm.chat({ model: 'base', messages }, deadline))).toBe('invalid_request');
  await vllm.close();
});

/** An error of the OpenAI routes: without an envelope. */
const flat = (message: string, param: string | null = null) => {
  return { object: 'error', message, type: 'BadRequestError', param, code: 400 };
};

it.each([
  ["The input (5000 tokens) is longer than the model's context length (4096 tokens).", 4096],
  ['Requested token count exceeds the model’s maximum context length of 4096 tokens.', 4096],
])('a conversation of which it says “%s” is too long, with the limit', async (words, limit) => {
  answers['/v1/chat/completions'] = { status: 400, body: flat(words) };
  const refused = await client
    .chat({ model: 'base', messages }, deadline)
    .catch((error: unknown) => asBacktalkError(error));
  expect(refused).toMatchObject({ code: 'context_length_exceeded' });
  expect((refused as Error).message).toContain(String(limit));
});

it('a field that it refuses is named', async () => {
  answers['/v1/chat/completions'] = { status: 400, body: flat('top_p must be in (0, 1], got 0.', 'top_p') };
  const refused = await client
    .chat({ model: 'base', messages }, deadline)
    .catch((error: unknown) => asBacktalkError(error));
  expect((refused as Error).message).toContain('top_p');
});

describe('completions', () => {
  it('completions come from its own path, with ids and logprobs, prompt after prompt', async () => {
    answers['/generate'] = {
      body: {
        text: 'Hi',
        output_ids: [11, 2],
        meta_info: {
          finish_reason: { type: 'stop', matched: 2 },
          output_token_logprobs: [
            [-0.5, 11, 'Hi'],
            [-0.25, 2, null],
          ],
          output_top_logprobs: [
            [
              [-0.5, 11, 'Hi'],
              [-1, 12, 'Ho'],
            ],
            null,
          ],
        },
      },
    };
    const request = {
      model: 'v1',
      prompt: [[1, 9], [4]],
      maxTokens: 3,
      temperature: 0,
      stop: ['.'],
      topLogprobs: 2,
      seed: 7,
    };
    const [first, second] = await client.completions(request, deadline);
    expect(first).toEqual({
      text: 'Hi',
      ids: [11, 2],
      logprobs: [-0.5, -0.25],
      topLogprobs: [{ Hi: -0.5, Ho: -1 }, {}],
      finishReason: 'stop',
    });
    expect(second).toEqual(first);
    expect(lastAsked()).toMatchObject({ input_ids: [4], lora_path: 'v1', return_logprob: true, top_logprobs_num: 2 });
    expect(lastAsked()['sampling_params']).toEqual({
      max_new_tokens: 3,
      temperature: 0,
      stop: ['.'],
      sampling_seed: 7,
    });
    await client.completions({ model: 'base', prompt: 'Hello', maxTokens: 1 }, deadline);
    expect(lastAsked()).toMatchObject({ text: 'Hello' });
    expect(lastAsked()).not.toHaveProperty('lora_path');
    await client.completions({ model: 'base', prompt: [5, 6], maxTokens: 1 }, deadline);
    expect(lastAsked()).toMatchObject({ input_ids: [5, 6] });
  });
});

describe('token ids of a conversation', () => {
  it('a conversation is rendered without an answer', async () => {
    answers['/tokenize'] = { body: { tokens: [1, 9, 4], count: 3, max_model_len: 4_096 } };
    const request = { model: 'v1', messages, tools: [], templateArguments: { enable_thinking: false } };
    expect(await client.tokenize(request, deadline)).toEqual([1, 9, 4]);
    expect(lastAsked()).toEqual({
      model: 'base:v1',
      messages,
      tools: [],
      chat_template_kwargs: { enable_thinking: false },
    });
  });
});

describe('scores', () => {
  it('an answer without tokens has no scores', async () => {
    answers['/generate'] = { body: { meta_info: { input_token_logprobs: [[null, 4, null]] } } };
    const item = { promptIds: [1, 9, 4], answerIds: [] };
    expect(await client.score([item], { ...deadline, model: 'base' })).toEqual([[]]);
  });

  it('scores start one token before the answer, whose own entry has no logprob', async () => {
    const entries = [
      [null, 4, null],
      [-1.5, 11, null],
      [-2.5, 12, null],
    ];
    answers['/generate'] = { body: { text: 'x', meta_info: { input_token_logprobs: entries } } };
    const item = { promptIds: [1, 9, 4], answerIds: [11, 12] };
    expect(await client.score([item], { ...deadline, model: 'v1' })).toEqual([[-1.5, -2.5]]);
    expect(lastAsked()).toMatchObject({ input_ids: [1, 9, 4, 11, 12], logprob_start_len: 2, lora_path: 'v1' });
  });

  it('refuses scores of other ids than were asked for', async () => {
    answers['/generate'] = { body: { meta_info: { input_token_logprobs: [[-1.5, 13, null]] } } };
    const asking = client.score([{ promptIds: [1], answerIds: [11] }], { ...deadline, model: 'base' });
    expect(await codeOf(asking)).toBe('engine_reply_invalid');
  });
});

it('an engine of these shapes is found able to do what they give', async () => {
  answers['/load_lora_adapter'] = { status: 400, body: { success: false, error_message: 'does not exist' } };
  answers['/tokenize'] = { body: { tokens: [11], count: 1, max_model_len: 4_096 } };
  const { baseModel, maxContext, names } = await client.probe(deadline);
  expect([baseModel, maxContext]).toEqual(['base', 4_096]);
  expect(names).toEqual(['token_ids', 'logprobs', 'streamed_token_ids', 'adapters', 'tokenize']);
});
