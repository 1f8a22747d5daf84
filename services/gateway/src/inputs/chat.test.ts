import OpenAI from 'openai';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { decodeConversation, type FactMessage } from '@backtalk/kit';
import { until } from '@backtalk/kit/testing';
import {
  loadVersion,
  putRoutes,
  startConversing,
  startLeasedEngine,
  type Conversing,
  type LeasedEngine,
  type StartedGateway,
  type Surroundings,
} from '../testing/started-gateway.js';

let conversing: Conversing;
let around: Surroundings;
let leased: LeasedEngine;
let started: StartedGateway;
let client: OpenAI;

beforeAll(async () => {
  conversing = await startConversing();
  ({ around, leased, started, client } = conversing);
});

afterAll(() => conversing.stop());

beforeEach(() => {
  leased.engine.settings.faults = {};
  Object.assign(leased.engine.settings, { tokenMs: 0, answerTokens: 12 });
});

const hello = [{ role: 'user' as const, content: 'Hello there' }];

async function completed(turn: string): Promise<FactMessage<'turnCompleted'>> {
  const fact = await until(() => around.reader.last('turnCompleted', { turn }), { what: `turn.completed of ${turn}` });
  return fact.message;
}

async function opened(turn: string): Promise<FactMessage<'turnOpened'>> {
  const fact = await until(() => around.reader.last('turnOpened', { turn }), { what: `turn.opened of ${turn}` });
  return fact.message;
}

describe('a chat request that is not streamed', () => {
  it('a whole answer comes under our id and the name asked for, and is in the log when it arrives', async () => {
    const { data, response } = await client.chat.completions
      .create({ model: 'backtalk', messages: hello, max_completion_tokens: 6 })
      .withResponse();
    const fact = await around.reader.last('turnCompleted', { turn: data.id });
    expect(data.model).toBe('backtalk');
    expect(data.usage?.completion_tokens).toBe(6);
    expect(data.choices[0]?.logprobs).toBeNull();
    expect(response.headers.get('x-backtalk-turn')).toBe(data.id);
    expect(response.headers.get('x-backtalk-session')).toBe(data.id.replace('turn_', 'session_'));
    expect(response.headers.get('x-backtalk-weights')).toBe('backtalk-v0');
    expect(fact?.message).toMatchObject({ trainable: true, untrainableReasons: [], finishReason: 'length' });
    expect(fact?.message.answerIds).toHaveLength(6);
    expect(fact?.message.text).toBe(data.choices[0]?.message.content);
    expect((await opened(data.id)).sampling).toMatchObject({
      temperature: 0.8,
      topP: 1,
      topK: -1,
      plain: true,
      maxTokens: 6,
    });
  });

  it('passes tools through, and logprobs to a client that asks', async () => {
    const tool = { type: 'function' as const, function: { name: 'get_weather', parameters: { type: 'object' } } };
    const answer = await client.chat.completions.create({
      model: 'backtalk',
      messages: hello,
      tools: [tool],
      tool_choice: 'required',
      logprobs: true,
    });
    const [call] = answer.choices[0]?.message.tool_calls ?? [];
    expect(call).toMatchObject({ function: { name: 'get_weather' } });
    expect(answer.choices[0]?.logprobs?.content?.length).toBe(answer.usage?.completion_tokens);
    const fact = await completed(answer.id);
    expect(fact.untrainableReasons).toEqual(['sampler_not_plain']);
    expect(JSON.parse(Buffer.from(fact.toolCalls).toString())).toMatchObject([{ function: { name: 'get_weather' } }]);
  });

  it('answers to a picture that came with the request, and keeps the turn out of training by name', async () => {
    const picture = { type: 'image_url' as const, image_url: { url: 'data:image/png;base64,AA==' } };
    const content = [{ type: 'text' as const, text: 'What is this?' }, picture];
    const answer = await client.chat.completions.create({ model: 'backtalk', messages: [{ role: 'user', content }] });
    expect(answer.choices[0]?.finish_reason).toBe('stop');
    expect((await completed(answer.id)).untrainableReasons).toEqual(['has_media']);
  });
});

describe('a streamed chat request', () => {
  it('a streamed answer comes frame by frame, with a usage chunk for a client that asks, and is stored before the final frame', async () => {
    const stream = await client.chat.completions.create({
      model: 'backtalk',
      messages: hello,
      stream: true,
      stream_options: { include_usage: true },
    });
    const chunks = [];
    for await (const chunk of stream) {
      const finished = chunk.choices[0]?.finish_reason;
      if (finished) expect(await around.reader.last('turnCompleted', { turn: chunk.id })).toBeDefined();
      chunks.push(chunk);
    }
    const text = chunks.map((chunk) => chunk.choices[0]?.delta.content ?? '').join('');
    expect(chunks.at(-2)?.choices[0]?.finish_reason).toBe('stop');
    expect(chunks.at(-1)).toMatchObject({ choices: [], usage: { completion_tokens: 12 } });
    const fact = await completed(chunks[0]?.id ?? '');
    expect(fact).toMatchObject({ trainable: true, text, finishReason: 'stop' });
    expect(fact.answerIds).toHaveLength(12);
    expect(fact.logprobs).toHaveLength(12);
  });

  it('hides ids, logprobs and counts from a client that did not ask', async () => {
    const response = await fetch(`${started.url}/chat/completions`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', 'x-request-id': 'my-request' },
      body: JSON.stringify({ model: 'backtalk', messages: hello, stream: true }),
    });
    const text = await response.text();
    expect(response.headers.get('x-request-id')).toBe('my-request');
    expect(text).not.toMatch(/token_ids|usage|chatcmpl|"logprob"/);
    expect(text.endsWith('data: [DONE]\n\n')).toBe(true);
  });

  it('cancels the engine’s work when the client goes away, and keeps the turn as aborted', async () => {
    Object.assign(leased.engine.settings, { tokenMs: 20, answerTokens: 2000 });
    const before = leased.engine.counts.cancelled;
    const stream = await client.chat.completions.create({ model: 'backtalk', messages: hello, stream: true });
    let turn = '';
    for await (const chunk of stream) {
      turn = chunk.id;
      if (chunk.choices[0]?.delta.content) break;
    }
    stream.controller.abort();
    await until(() => leased.engine.counts.cancelled === before + 1 && leased.engine.counts.running === 0);
    expect(await completed(turn)).toMatchObject({
      finishReason: 'abort',
      untrainableReasons: ['aborted'],
      trainable: false,
    });
  });

  it('cancels the engine’s work for an answer that is not streamed, too', async () => {
    Object.assign(leased.engine.settings, { tokenMs: 10, answerTokens: 2000 });
    const before = leased.engine.counts.cancelled;
    const controller = new AbortController();
    const asking = client.chat.completions.create(
      { model: 'backtalk', messages: hello },
      { signal: controller.signal },
    );
    await until(() => leased.engine.counts.running === 1);
    controller.abort();
    await expect(asking).rejects.toThrow(OpenAI.APIUserAbortError);
    await until(() => leased.engine.counts.cancelled === before + 1);
  });

  it('a stream ends in an error frame when the engine dies, and is kept as failed', async () => {
    Object.assign(leased.engine.settings, { tokenMs: 20, faults: { dieAfterTokens: { tokens: 3, how: 'socket' } } });
    const stream = await client.chat.completions.create({ model: 'backtalk', messages: hello, stream: true });
    let turn = '';
    const reading = async (): Promise<void> => {
      for await (const chunk of stream) turn = chunk.id;
    };
    await expect(reading()).rejects.toMatchObject({ code: 'engine_failed' });
    expect(await completed(turn)).toMatchObject({ finishReason: 'error', untrainableReasons: ['engine_failed'] });
  });
});

describe('sessions', () => {
  it('a session goes on when a request contains our answer, and the log holds only what is new', async () => {
    const first = await client.chat.completions.create({ model: 'backtalk', messages: hello });
    const answer = first.choices[0]?.message.content ?? '';
    const messages = [
      ...hello,
      { role: 'assistant' as const, content: ` ${answer}\n` },
      { role: 'user' as const, content: 'And then?' },
    ];
    const { data: second, response } = await client.chat.completions
      .create({ model: 'backtalk', messages })
      .withResponse();
    expect(response.headers.get('x-backtalk-session')).toBe(first.id.replace('turn_', 'session_'));
    const fact = await opened(second.id);
    expect(fact.provisionalParent).toBe(first.id);
    expect(fact.answerKeys).toEqual([(await completed(first.id)).answerKey]);
    expect(fact.conversation).toMatchObject({ baseTurn: first.id, sharedMessages: 1 });
    if (fact.conversation === undefined) return;
    const read = await decodeConversation(fact.conversation, async (turn) => {
      const { conversation } = await opened(turn);
      if (conversation === undefined) throw new RangeError(turn);
      return conversation;
    });
    expect(read.messages).toEqual(messages);
  });

  it('a session is told from another with the same answer by what was asked, though that one is newer', async () => {
    leased.engine.settings.reply = () => 'Done.';
    const ask = (content: string) => ({ role: 'user' as const, content });
    const answered = { role: 'assistant' as const, content: 'Done.' };
    const [light] = [
      await client.chat.completions.create({
        model: 'backtalk',
        messages: [ask('[Mon 2026-11-02 10:00 UTC] Light on')],
      }),
      await client.chat.completions.create({ model: 'backtalk', messages: [ask('Door shut')] }),
    ];
    const messages = [ask('Light on'), answered, ask('Too bright')];
    const { id } = await client.chat.completions.create({ model: 'backtalk', messages });
    delete leased.engine.settings.reply;
    const [first, fact] = [await opened(light.id), await opened(id)];
    expect(fact.provisionalParent).toBe(light.id);
    expect(fact.questionKeys).toEqual([first.questionKeys[0], expect.not.stringMatching(first.questionKeys[0] ?? '')]);
  });

  it('a session takes the client’s own name where it gives one, which engines never see', async () => {
    const body = { model: 'backtalk', messages: hello, session_id: 'my chat', turn_type: 'main', session_done: true };
    const first = await client.chat.completions.create(body);
    const { response } = await client.chat.completions
      .create({ model: 'backtalk', messages: hello }, { headers: { 'X-Session-Id': 'my chat' } })
      .withResponse();
    const fact = await opened(first.id);
    expect(fact).toMatchObject({ declaredSession: 'my chat', declaredTurnType: 'main', declaredSessionDone: true });
    expect(response.headers.get('x-backtalk-session')).toBe(fact.provisionalSession);
    const ended = await until(() => around.reader.last('sessionEnded', { session: fact.provisionalSession }));
    expect(ended.message.turn).toBe(first.id);
  });

  it('the id that an answer’s header gives names its own session', async () => {
    const first = await client.chat.completions.create({ model: 'backtalk', messages: hello });
    const session = first.id.replace('turn_', 'session_');
    const { response } = await client.chat.completions
      .create({ model: 'backtalk', messages: hello }, { headers: { 'X-Session-Id': session } })
      .withResponse();
    expect(response.headers.get('x-backtalk-session')).toBe(session);
    expect(response.headers.get('x-backtalk-train')).toBe('on');
  });

  it('a session inherits a no along the conversation', async () => {
    const first = await client.chat.completions.create(
      { model: 'backtalk', messages: [{ role: 'user', content: 'A secret' }] },
      { headers: { 'X-Backtalk-Train': 'off' } },
    );
    expect((await completed(first.id)).untrainableReasons).toEqual(['opted_out']);
    const answer = first.choices[0]?.message.content ?? '';
    const messages = [
      { role: 'user' as const, content: 'A secret' },
      { role: 'assistant' as const, content: answer },
      { role: 'user' as const, content: 'More' },
    ];
    const { data: second, response } = await client.chat.completions
      .create({ model: 'backtalk', messages })
      .withResponse();
    expect((await opened(second.id)).consent).toEqual({ train: false, source: 'session' });
    expect(response.headers.get('x-backtalk-train')).toBe('off');
    const facts = await Promise.all([first.id, second.id].map((turn) => around.reader.last('turnOpened', { turn })));
    expect(facts.map((fact) => fact?.headers.train)).toEqual(['no', 'no']);
  });
});

describe('a session that is ended', () => {
  it('a name that is used again is ended again, by the turn that it ends with', async () => {
    const name = 'twice used';
    const say = () =>
      client.chat.completions.create({ model: 'backtalk', messages: hello }, { headers: { 'X-Session-Id': name } });
    const end = async () => {
      const response = await fetch(`${started.url}/sessions/${encodeURIComponent(name)}`, { method: 'DELETE' });
      expect(response.status).toBe(200);
    };
    const first = await say();
    await end();
    const session = (await opened(first.id)).provisionalSession;
    expect((await around.reader.last('sessionEnded', { session }))?.message.turn).toBe(first.id);
    const second = await say();
    await end();
    const again = await around.reader.last('sessionEnded', { session: second.id.replace('turn_', 'session_') });
    expect(again?.message.turn).toBe(second.id);
  });
});

describe('weights', () => {
  it('serves the versions of the routes; a pinned version is served and never trained on', async () => {
    const other = await startLeasedEngine(around, 'engine-2', { versions: ['backtalk-v0', 'backtalk-v1'] });
    await loadVersion(around, other, 'backtalk-v1');
    await putRoutes(around, 'backtalk-v1', 10);
    const answer = await until(async () => {
      const { data, response } = await client.chat.completions
        .create({ model: 'backtalk', messages: hello })
        .withResponse();
      return response.headers.get('x-backtalk-weights') === 'backtalk-v1' ? data : undefined;
    });
    expect(await completed(answer.id)).toMatchObject({ weightsVersion: 'backtalk-v1', engine: other.engine.url });
    const pinned = await client.chat.completions.create({ model: 'backtalk-v0', messages: hello });
    expect(pinned.model).toBe('backtalk-v0');
    expect(await completed(pinned.id)).toMatchObject({
      weightsVersion: 'backtalk-v0',
      untrainableReasons: ['pinned_version'],
    });
    await putRoutes(around, 'backtalk-v0', 11);
    await until(async () => (await started.metric('routes_fence')) === 11);
    await other.stop();
  });

  it('stores an engine’s change of weights at the end as it was named, and does not train on it', async () => {
    leased.engine.settings.faults = { models: { last: 'backtalk-v7' } };
    const stream = await client.chat.completions.create({ model: 'backtalk', messages: hello, stream: true });
    const chunks = [];
    for await (const chunk of stream) chunks.push(chunk);
    expect(new Set(chunks.map(({ model }) => model))).toEqual(new Set(['backtalk']));
    expect(await completed(chunks[0]?.id ?? '')).toMatchObject({
      weightsVersion: 'backtalk-v0',
      weightsVersionAtEnd: 'backtalk-v7',
      trainable: false,
      untrainableReasons: ['version_changed'],
    });
  });

  it('stores the weights that the engine names, also where others were asked for', async () => {
    leased.engine.settings.faults = { models: { first: 'unheard-of' } };
    const { data, response } = await client.chat.completions
      .create({ model: 'backtalk', messages: hello })
      .withResponse();
    expect([data.model, response.headers.get('x-backtalk-weights')]).toEqual(['backtalk', 'backtalk-v0']);
    expect(await completed(data.id)).toMatchObject({
      weightsVersion: 'unheard-of',
      weightsVersionAtEnd: 'unheard-of',
      trainable: false,
      untrainableReasons: ['other_version'],
    });
  });

  it('serves weights whose logprobs the engine’s own scoring does not confirm, and does not train on them', async () => {
    const lease = {
      versions: ['backtalk-v0', 'backtalk-v4'],
      capabilities: ['token_ids', 'logprobs', 'prompt_logprobs'],
    };
    const liar = await startLeasedEngine(around, 'engine-4', lease);
    await loadVersion(around, liar, 'backtalk-v4');
    const ask = () => client.chat.completions.create({ model: 'backtalk', messages: hello });
    const answered = async () => completed((await ask()).id);
    await putRoutes(around, 'backtalk-v4', 12);
    await until(async () => (await started.metric('routes_fence')) === 12);
    const counted = await started.metric('untrainable_total{reason="logprobs_untrue"}');
    const answer = await ask();
    expect(answer.choices[0]?.message.content).not.toBe('');
    expect(await completed(answer.id)).toMatchObject({
      engine: liar.engine.url,
      text: answer.choices[0]?.message.content,
      trainable: false,
      untrainableReasons: ['logprobs_untrue'],
    });
    await until(async () => (await started.metric('untrainable_total{reason="logprobs_untrue"}')) > counted);
    lease.capabilities.push('true_logprobs');
    await liar.lease.refresh();
    await until(async () => (await answered()).trainable, { what: 'a turn of the same engine, believed now' });
    await putRoutes(around, 'backtalk-v0', 13);
    await until(async () => (await started.metric('routes_fence')) === 13);
    await liar.stop();
  });

  it('models are listed, alias first', async () => {
    const ids = [];
    for await (const model of client.models.list()) ids.push(model.id);
    expect(ids.slice(0, 2)).toEqual(['backtalk', 'backtalk-v0']);
    expect(await client.models.retrieve('backtalk')).toMatchObject({ object: 'model' });
    await expect(client.models.retrieve('gpt-4')).rejects.toThrow(OpenAI.NotFoundError);
  });
});
