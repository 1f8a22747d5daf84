import { createServer, type IncomingMessage, type Server } from 'node:http';
import { asBacktalkError } from '@backtalk/kit';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { CaptureAccumulator } from '../capture/accumulator.js';
import { judgeCapture } from '../capture/invariants.js';
import { createEngineClient } from '../create-engine-client.js';
import type { EngineClient, EngineFrame, RawObject } from '../engine-client.js';

/** What the engine is to answer, by path; and what it was asked. */
let answers: Record<string, { status?: number; body: unknown }>;
let asked: { path: string; body: RawObject }[];
let server: Server;
let client: EngineClient;

const deadline = { deadlineMs: 60_000 };
const messages = [{ role: 'user', content: 'Hello' }];

/** As SGLang documents it: ids and logprobs in `meta_info`, each beside its text. */
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
  client = createEngineClient({ dialect: 'sglang', url: `http://127.0.0.1:${port}` });
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
    ['LoRA adapter v1 is already loaded', 400, 'adapter_already_loaded'],
    ['/adapters/v1 does not exist', 400, 'adapter_path_missing'],
    ['rank 128 is above max_lora_rank', 400, 'adapter_refused'],
    ['rank 128 is above max_lora_rank', 200, 'adapter_refused'],
    ['the scheduler is gone', 500, 'engine_failed'],
  ])('adapters that are refused because %s (status %i) are %s', async (words, status, code) => {
    answers['/load_lora_adapter'] = { status, body: { success: false, error_message: words } };
    expect(await codeOf(client.loadAdapter('v1', '/adapters/v1', deadline))).toBe(code);
  });

  it('adapters cannot be had where the engine was started without them', async () => {
    expect(await codeOf(client.loadAdapter('v1', '/adapters/v1', deadline))).toBe('engine_unsupported');
  });
});

describe('an adapter that the engine has forgotten', () => {
  it('an adapter that the engine has forgotten is a model that it does not hold, and no fault of the request', async () => {
    const words = 'The following requested LoRA adapters are not loaded: v1';
    answers['/generate'] = { status: 400, body: { error: { message: words } } };
    const probes = [{ promptIds: [1], answerIds: [2] }];
    expect(await codeOf(client.score(probes, { model: 'v1', ...deadline }))).toBe('model_not_found');
  });
});

describe('scores', () => {
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
