import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { asBacktalkError } from '@backtalk/kit';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { CaptureAccumulator } from '../capture/accumulator.js';
import { judgeCapture } from '../capture/invariants.js';
import { createEngineClient } from '../create-engine-client.js';
import type { EngineClient, EngineFrame } from '../engine-client.js';
import { fakeLogprobs, startFakeEngine, type FakeEngine } from '../testing/index.js';

const deadline = { deadlineMs: 60_000 };
const messages = [{ role: 'user', content: 'How is the weather today?' }];

let engine: FakeEngine;
let client: EngineClient;

beforeEach(async () => {
  engine = await startFakeEngine();
  client = createEngineClient({ dialect: 'vllm', url: engine.url });
});

afterEach(async () => {
  await client.close();
  await engine.stop();
});

const request = (more: object = {}) => ({ model: engine.baseModel, messages, ...more });

async function frames(stream: AsyncIterable<EngineFrame>): Promise<EngineFrame[]> {
  const all: EngineFrame[] = [];
  for await (const frame of stream) all.push(frame);
  return all;
}

function folded(all: EngineFrame[]) {
  const accumulator = new CaptureAccumulator();
  for (const frame of all) accumulator.add(frame);
  return accumulator.capture();
}

describe('capture', () => {
  it('carries what the engine calls its weights in the first frame and in the last, each by itself', async () => {
    engine.settings.faults = { models: { last: 'others' } };
    const { modelAtStart, modelAtEnd } = folded(await frames(client.chatStream(request(), deadline)));
    expect([modelAtStart, modelAtEnd]).toEqual([engine.baseModel, 'others']);
  });

  it('a capture is the same streamed and whole, and passes every check', async () => {
    const streamed = folded(await frames(client.chatStream(request(), deadline)));
    const { capture, raw } = await client.chat(request(), deadline);
    expect(judgeCapture(streamed)).toEqual({ trainable: true, reasons: [] });
    expect(capture).toEqual(streamed);
    expect(raw['object']).toBe('chat.completion');
  });

  it('agrees with scoring the same ids', async () => {
    const { capture } = await client.chat(request(), deadline);
    const item = { promptIds: capture.promptIds ?? [], answerIds: capture.answerIds };
    const [score] = await client.score([item], { ...deadline, model: engine.baseModel });
    expect(score).toEqual(capture.logprobs);
    expect(score).toEqual(fakeLogprobs('base', item.promptIds, item.answerIds));
  });

  it.each([
    ['no_ids', 'no_token_ids'],
    ['wrong_count', 'count_mismatch'],
    ['no_logprobs', 'no_logprobs'],
    ['not_finite', 'logprob_not_finite'],
  ] as const)('an answer of an engine that lies (%s) is not trainable: %s', async (lie, reason) => {
    engine.settings.faults = { lie };
    expect(judgeCapture(folded(await frames(client.chatStream(request(), deadline)))).reasons).toContain(reason);
    expect(judgeCapture((await client.chat(request(), deadline)).capture).reasons).toContain(reason);
  });

  it('folds a tool call out of its pieces', async () => {
    const tools = [{ type: 'function', function: { name: 'get_weather' } }];
    const asked = request({ tools, tool_choice: 'required' });
    const capture = folded(await frames(client.chatStream(asked, deadline)));
    expect(capture.toolCalls[0]?.function).toEqual({ name: 'get_weather', arguments: '{"city": "Paris"}' });
    expect(capture.finishReason).toBe('tool_calls');
    expect(judgeCapture(capture).trainable).toBe(true);
  });
});

describe('failures', () => {
  const codeOf = (outcome: Promise<unknown>) =>
    outcome.then(
      () => 'none',
      (error: unknown) => asBacktalkError(error).code,
    );

  it.each(['socket', 'error_frame'] as const)('a death in mid-stream (%s) is said after the frames', async (how) => {
    engine.settings.faults = { dieAfterTokens: { tokens: 3, how } };
    engine.settings.tokenMs = 2;
    const seen: EngineFrame[] = [];
    const read = async () => {
      for await (const frame of client.chatStream(request(), deadline)) seen.push(frame);
    };
    expect(await codeOf(read())).toBe('engine_stream_broken');
    expect(seen).toHaveLength(4);
  });

  it('names the error for a busy engine, an unknown model, a prompt too long and an engine that is away', async () => {
    engine.settings.faults = { busy: true };
    expect(await codeOf(client.chat(request(), deadline))).toBe('engine_overloaded');
    engine.settings.faults = {};
    expect(await codeOf(frames(client.chatStream({ ...request(), model: 'nope' }, deadline)))).toBe('model_not_found');
    engine.settings.maxContext = 4;
    expect(await codeOf(client.chat(request(), deadline))).toBe('context_length_exceeded');
    await engine.stop();
    // The first call may still find a connection that is about to close.
    await codeOf(client.chat(request(), deadline));
    expect(await codeOf(client.chat(request(), deadline))).toBe('engine_unreachable');
    expect(await client.health(deadline)).toBe('unreachable');
  });

  it('tells an engine that ended with the request from one that was never reached', async () => {
    engine.settings.heard = () => setImmediate(() => void engine.stop());
    engine.settings.firstTokenMs = 60_000;
    expect(await codeOf(client.chat(request(), deadline))).toBe('engine_connection_lost');
    expect(await codeOf(client.chat(request(), deadline))).toBe('engine_unreachable');
  });

  it('a silent engine is left at the deadline, at the first byte, at a gap', async () => {
    engine.settings.faults = { hang: true };
    expect(await codeOf(client.chat(request(), { deadlineMs: 30 }))).toBe('engine_timeout');
    expect(await codeOf(frames(client.chatStream(request(), { ...deadline, firstByteMs: 30 })))).toBe('engine_timeout');
    engine.settings.faults = {};
    engine.settings.tokenMs = 1_000;
    expect(await codeOf(frames(client.chatStream(request(), { ...deadline, idleMs: 30 })))).toBe('engine_timeout');
  });

  it('a caller that aborts cancels the work of the engine', async () => {
    engine.settings.tokenMs = 5;
    engine.settings.answerTokens = 10_000;
    const caller = new AbortController();
    const stream = client.chatStream(request(), { ...deadline, signal: caller.signal });
    const read = async () => {
      for await (const frame of stream) if (frame.ids !== undefined) caller.abort();
    };
    expect(await codeOf(read())).toBe('request_aborted');
    await expect.poll(() => engine.counts, { timeout: 30_000 }).toMatchObject({ cancelled: 1, running: 0 });
  });

  it('leaving the loop cancels the work of the engine', async () => {
    engine.settings.tokenMs = 5;
    engine.settings.answerTokens = 10_000;
    for await (const frame of client.chatStream(request(), deadline)) if (frame.ids !== undefined) break;
    await expect.poll(() => engine.counts, { timeout: 30_000 }).toMatchObject({ cancelled: 1, running: 0 });
  });

  it('a reader that stops reading holds the engine back, and loses no frame', async () => {
    engine.settings.answerTokens = 5_000;
    engine.settings.maxContext = 100_000;
    const iterator = client.chatStream(request(), deadline)[Symbol.asyncIterator]();
    await iterator.next();
    await expect.poll(() => engine.counts.tokens, { timeout: 30_000 }).toBeGreaterThan(256);
    let count = 1;
    for (let next = await iterator.next(); next.done !== true; next = await iterator.next()) count += 1;
    expect(count).toBe(5_002);
  });
});

describe('administration', () => {
  let folder: string;

  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), 'dialects-'));
    await writeFile(join(folder, 'adapter_config.json'), '{}');
    await writeFile(join(folder, 'adapter_model.safetensors'), 'weights');
  });

  afterEach(() => rm(folder, { recursive: true }));

  it('loads, lists, answers by, and unloads an adapter', async () => {
    await client.loadAdapter('backtalk-v1', folder, deadline);
    expect(await client.models(deadline)).toContainEqual({
      id: 'backtalk-v1',
      parent: engine.baseModel,
      root: folder,
      maxContext: undefined,
    });
    await expect(client.loadAdapter('backtalk-v1', folder, deadline)).rejects.toMatchObject({
      code: 'adapter_already_loaded',
    });
    const base = await client.chat(request({ seed: 1 }), deadline);
    const adapted = await client.chat(request({ seed: 1, model: 'backtalk-v1' }), deadline);
    expect(adapted.capture.answerIds).not.toEqual(base.capture.answerIds);
    await client.unloadAdapter('backtalk-v1', deadline);
    await expect(client.unloadAdapter('backtalk-v1', deadline)).rejects.toMatchObject({ code: 'adapter_not_loaded' });
    await expect(client.loadAdapter('x', join(folder, 'nowhere'), deadline)).rejects.toMatchObject({
      code: 'adapter_path_missing',
    });
  });

  it('an adapter that an engine fails to unload is not loaded where the engine lists it no more', async () => {
    await client.loadAdapter('backtalk-v1', folder, deadline);
    engine.settings.faults = { unloadStatus: 500 };
    await expect(client.unloadAdapter('backtalk-v1', deadline)).rejects.toMatchObject({ code: 'engine_failed' });
    engine.adapters.forget();
    await expect(client.unloadAdapter('backtalk-v1', deadline)).rejects.toMatchObject({ code: 'adapter_not_loaded' });
  });

  it('finds out what an engine can do', async () => {
    const { names, baseModel, maxContext } = await client.probe(deadline);
    expect(baseModel).toBe(engine.baseModel);
    expect(maxContext).toBe(8_192);
    expect([...names].sort()).toEqual([
      'adapters',
      'logprobs',
      'prompt_logprobs',
      'streamed_token_ids',
      'token_ids',
      'tokenize',
      'true_logprobs',
    ]);
    engine.settings.faults = { lie: 'no_ids' };
    expect((await client.probe(deadline)).names).toEqual(['logprobs', 'adapters', 'tokenize']);
  });

  it('counts tokens of text and of conversations', async () => {
    expect(await client.tokenize({ model: engine.baseModel, text: 'the river' }, deadline)).toHaveLength(2);
    expect((await client.tokenize({ model: engine.baseModel, messages }, deadline)).length).toBeGreaterThan(5);
    const bodies: unknown[] = [];
    engine.settings.tokenizeHeard = (body) => bodies.push(body);
    const templateArguments = { enable_thinking: false };
    await client.tokenize({ model: engine.baseModel, messages, templateArguments }, deadline);
    expect(bodies).toMatchObject([{ chat_template_kwargs: templateArguments, add_generation_prompt: true }]);
  });

  it('serves plain endpoints without ids, and says that it cannot do more', async () => {
    const plain = createEngineClient({ dialect: 'openai', url: `${engine.url}/v1` });
    const { capture } = await plain.chat(request(), deadline);
    expect(capture.text).not.toBe('');
    expect(judgeCapture(capture).reasons).toEqual(['no_prompt_ids', 'no_token_ids']);
    await expect(plain.loadAdapter('x', folder, deadline)).rejects.toMatchObject({ code: 'engine_unsupported' });
    await plain.close();
  });
});
