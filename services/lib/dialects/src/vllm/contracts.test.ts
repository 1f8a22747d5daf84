import { asBacktalkError } from '@backtalk/kit';
import { afterEach, describe, expect, it } from 'vitest';
import { CaptureAccumulator } from '../capture/accumulator.js';
import type { Capture } from '../capture/capture.js';
import { judgeCapture } from '../capture/invariants.js';
import type { EngineClient } from '../engine-client.js';
import { createEngineClient } from '../create-engine-client.js';
import { exchangeIn, isWhole, playBack, readTranscript, wholeEvents, type Exchange } from '../testing/transcripts.js';

const folder = 'vllm-0.32';
const options = { deadlineMs: 60_000 };
const request = { model: 'smol', messages: [{ role: 'user', content: 'Say hello in one word.' }] };
const cleanUps: (() => Promise<void>)[] = [];

afterEach(async () => {
  for (const cleanUp of cleanUps.splice(0)) await cleanUp();
});

async function clientFor(exchange: Exchange | undefined): Promise<EngineClient> {
  if (exchange === undefined) expect.unreachable('the transcript holds no such exchange');
  const engine = await playBack(exchange);
  const client = createEngineClient({ dialect: 'vllm', url: engine.url });
  cleanUps.push(
    () => client.close(),
    () => engine.stop(),
  );
  return client;
}

async function captured(exchange: Exchange | undefined): Promise<Capture> {
  const client = await clientFor(exchange);
  if (exchange?.body.startsWith('data: ') !== true) return (await client.chat(request, options)).capture;
  const accumulator = new CaptureAccumulator();
  for await (const frame of client.chatStream(request, options)) accumulator.add(frame);
  return accumulator.capture();
}

const failureCode = async (exchange: Exchange | undefined): Promise<string> =>
  captured(exchange).then(
    () => 'none',
    (error: unknown) => asBacktalkError(error).code,
  );

describe('chat answers of vLLM 0.32', () => {
  const chats = ['02-chat-nonstream.txt', '03-chat-stream.txt', '11-tools.txt', '21-abort-eos-utf8.txt']
    .flatMap((file) => readTranscript(`${folder}/${file}`))
    .filter((exchange) => exchange.path === '/v1/chat/completions' && exchange.status === 200 && isWhole(exchange));

  it.each(chats.map((chat) => [chat.title, chat] as const))(
    'counts of "%s" agree wherever they were sent',
    async (_, chat) => {
      const capture = await captured(chat);
      const asked = chat.request.includes('"return_token_ids": true') && chat.request.includes('"logprobs": true');
      const verdict = judgeCapture(capture);
      expect(capture.finishReason).not.toBe('');
      if (!asked) expect(verdict.trainable).toBe(false);
      else {
        expect(verdict.reasons).not.toContain('count_mismatch');
        expect(capture.answerIds).toHaveLength(capture.logprobs.length);
        expect(capture.promptIds?.length).toBeGreaterThan(0);
      }
    },
  );

  it('covers more than a dozen whole answers', () => expect(chats.length).toBeGreaterThan(12));

  it('says the same streamed and whole', async () => {
    const streamed = await captured(exchangeIn(`${folder}/03-chat-stream.txt`, 'stream continuous_usage_stats'));
    const whole = await captured(
      exchangeIn(`${folder}/02-chat-nonstream.txt`, 'token ids + logprobs, top_logprobs omitted'),
    );
    expect(judgeCapture(streamed)).toEqual({ trainable: true, reasons: [] });
    expect(judgeCapture(whole)).toEqual({ trainable: true, reasons: [] });
    expect(whole.answerIds.slice(0, 4)).toEqual(streamed.answerIds);
    expect(whole.logprobs.slice(0, 4)).toEqual(streamed.logprobs);
    expect(whole.text.startsWith(streamed.text)).toBe(true);
  });

  it('keeps the ids of tokens that a tool parser swallowed', async () => {
    const chat = exchangeIn(`${folder}/11-tools.txt`, 'auto, stream, token ids + logprobs');
    if (chat === undefined) expect.unreachable();
    const client = await clientFor({ ...wholeEvents(chat), body: `${wholeEvents(chat).body}data: [DONE]\n\n` });
    const accumulator = new CaptureAccumulator();
    const read = async () => {
      for await (const frame of client.chatStream(request, options)) accumulator.add(frame);
    };
    await expect(read()).rejects.toMatchObject({ code: 'engine_stream_broken' });
    const { answerIds, logprobs, toolCalls } = accumulator.capture();
    expect(answerIds.length).toBeGreaterThan(20);
    expect(logprobs).toHaveLength(answerIds.length);
    expect(toolCalls[0]?.function.name).toBe('get_weather');
    expect(toolCalls[0]?.function.arguments).toContain('Paris');
  });

  it('marks aborted answers, streamed and whole', async () => {
    for (const title of ['chat stream aborted by /pause?mode=abort', 'chat non-stream aborted'])
      expect(judgeCapture(await captured(exchangeIn(`${folder}/21-abort-eos-utf8.txt`, title))).reasons).toContain(
        'aborted',
      );
  });

  it('marks several choices', async () => {
    for (const [file, title] of [
      ['02-chat-nonstream.txt', 'n=2'],
      ['03-chat-stream.txt', 'stream n=2'],
    ] as const)
      expect(judgeCapture(await captured(exchangeIn(`${folder}/${file}`, title))).reasons).toContain('several_choices');
  });
});

describe('refusals of vLLM 0.32', () => {
  it.each([
    ['06-errors.txt', 'unknown model chat', 'model_not_found'],
    ['06-errors.txt', 'unknown model chat stream', 'model_not_found'],
    ['06-errors.txt', 'oversize prompt', 'context_length_exceeded'],
    ['06-errors.txt', 'oversize prompt stream', 'context_length_exceeded'],
    ['06-errors.txt', 'prompt + max_tokens over limit', 'context_length_exceeded'],
    ['06-errors.txt', 'bad JSON', 'invalid_request'],
    ['06-errors.txt', 'messages empty', 'invalid_request'],
    ['06-errors.txt', 'temperature negative', 'invalid_request'],
    ['06-errors.txt', 'temperature string', 'invalid_request'],
    ['06-errors.txt', '404 path', 'engine_unsupported'],
    [
      '16-admission-weightversion.txt',
      'request 1 of 4, started 150 ms apart, --max-num-seqs 1 --max-num-queued-reqs 1',
      'engine_overloaded',
    ],
  ])('the refusal in %s, %s, is read as %s', async (file, title, code) => {
    expect(await failureCode(exchangeIn(`${folder}/${file}`, title))).toBe(code);
  });

  it('names parameter and limit, and repeats no input of a schema error', async () => {
    const chat = async (title: string) => captured(exchangeIn(`${folder}/06-errors.txt`, title));
    await expect(chat('temperature negative')).rejects.toThrow(/temperature.*non-negative/);
    await expect(chat('oversize prompt')).rejects.toThrow(/2048 tokens/);
    await expect(chat('temperature string')).rejects.toThrow(/temperature.*valid number/);
    await expect(chat('temperature string')).rejects.not.toThrow(/hot/);
  });

  it('takes a death in mid-stream for a broken stream, though [DONE] follows', async () => {
    const death = exchangeIn(`${folder}/17-death-kill.txt`, 'stream in flight');
    expect(await failureCode(death && wholeEvents(death))).toBe('engine_stream_broken');
  });
});

describe('scoring and adapters of vLLM 0.32', () => {
  it('reads the logprobs of given ids, and leaves out the first token, which has none', async () => {
    const client = await clientFor(exchangeIn(`${folder}/04-completions-scoring.txt`, 'batch of two id prompts'));
    const items = [
      { promptIds: [1, 9690], answerIds: [198, 2683] },
      { promptIds: [1, 9690, 198], answerIds: [2683, 359, 253] },
    ];
    expect(await client.score(items, { ...options, model: 'smol' })).toEqual([
      [-1.0195900201797485, -4.153683662414551],
      [-4.153683662414551, -0.730121910572052, -1.5989842414855957],
    ]);
  });

  it.each([
    ['load ad1', 'none'],
    ['duplicate load same name', 'adapter_already_loaded'],
    ['bad path (absolute)', 'adapter_path_missing'],
    ['rank too large', 'adapter_refused'],
    ['name equal to base model', 'adapter_refused'],
  ])('loading an adapter, %s: %s', async (title, code) => {
    const client = await clientFor(exchangeIn(`${folder}/05-lora.txt`, title));
    const outcome = client.loadAdapter('ad1', '/adapters/ad1', options);
    if (code === 'none') await expect(outcome).resolves.toBeUndefined();
    else await expect(outcome).rejects.toMatchObject({ code });
  });

  it.each([
    ['unload ad2', 'none'],
    ['unload ad2 again', 'adapter_not_loaded'],
  ])('unloading an adapter, %s: %s', async (title, code) => {
    const client = await clientFor(exchangeIn(`${folder}/05-lora.txt`, title));
    const outcome = client.unloadAdapter('ad2', options);
    if (code === 'none') await expect(outcome).resolves.toBeUndefined();
    else await expect(outcome).rejects.toMatchObject({ code });
  });
});
