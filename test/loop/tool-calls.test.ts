import { isDeepStrictEqual } from 'node:util';
import { freePort, until } from '@backtalk/kit/testing';
import OpenAI from 'openai';
import { ChatCompletionStream } from 'openai/lib/ChatCompletionStream';
import type { Stream } from 'openai/streaming';
import type {
  ChatCompletion,
  ChatCompletionChunk,
  ChatCompletionMessage,
  ChatCompletionMessageParam,
} from 'openai/resources/chat/completions';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { z } from 'zod';
import { breakings, type Breaking, type KeptRequest } from './broken-requests.js';
import { LogBook } from './fact-log.js';
import { generatedTalk, type GeneratedTalk } from './generated-talk.js';
import { startTestMachine, type TestMachine } from './machine.js';
import { MadeModel } from './made-model.js';
import { randomFrom } from './random.js';
import { TrainingTap } from './training-tap.js';

// Models of four families made on the spot, whose answers are given to them word for word, call a tool through the whole of
// Backtalk: the client runs it, writes the call back as JavaScript does, and corrects what is said then.
const given = '{"city": "Rome", "days": [1, 2]}';
const calls: Readonly<Record<string, string>> = {
  qwen2: `<tool_call>\n{"name": "rain", "arguments": ${given}}\n</tool_call>`,
  qwen3: `<think>\nThe tool knows.\n</think>\n\n<tool_call>\n{"name": "rain", "arguments": ${given}}\n</tool_call>`,
  llama: `{"name": "rain", "parameters": ${given}}`,
  mistral: `[TOOL_CALLS][{"name": "rain", "arguments": ${given}}]`,
};
/** What the tool says, and what the model says on it: answers that are alike are not trained on twice. */
const tellings: Readonly<Record<string, string>> = {
  'none at all': 'There is none.',
  'until evening': 'It pours now, and ends at six.',
};
/** Of the ways in which a request could be kept wrong, those that a family's template does not show. */
const withoutThoughts: readonly Breaking[] = ['thoughts left out', 'template arguments left out'];
const unseen: Readonly<Record<string, readonly Breaking[]>> = {
  qwen2: [],
  qwen3: [],
  llama: withoutThoughts,
  mistral: withoutThoughts,
};
const correction = 'No, that is wrong. Answer in one short sentence.';
const tools: OpenAI.ChatCompletionTool[] = [
  {
    type: 'function',
    function: {
      name: 'rain',
      description: 'Whether it rains.',
      parameters: { type: 'object', properties: { city: { type: 'string' } } },
    },
  },
];

/** Two turns a talk, and four families: 200 turns. */
const talksEach = 25;
const talksSeed = 11;
const askMs = 60_000;

const said = z.object({ choices: z.array(z.object({ message: z.object({ content: z.string().nullish() }) })) });
const thinking = z.object({ reasoning: z.string().nullish() });

interface Asked {
  readonly turn: string;
  readonly messages: readonly ChatCompletionMessageParam[];
  readonly message: ChatCompletionMessage;
  readonly finish: string;
}

/** Of pieces that the client does not know, it keeps the last one only. */
async function gathered(chunks: Stream<ChatCompletionChunk>): Promise<ChatCompletion> {
  const stream = ChatCompletionStream.fromReadableStream(chunks.toReadableStream());
  let reasoning = '';
  stream.on('chunk', ({ choices: [choice] }) => {
    reasoning += thinking.parse(choice?.delta).reasoning ?? '';
  });
  const whole = await stream.finalChatCompletion();
  for (const { message } of whole.choices) Object.assign(message, { reasoning });
  return whole;
}

describe.each(Object.keys(calls))('a model of the family %s', (kind) => {
  let made: MadeModel;
  const tap = new TrainingTap();
  let machine: TestMachine;
  let book: LogBook;

  beforeAll(async () => {
    made = new MadeModel(kind, 4096);
    const tapPort = await freePort();
    await tap.start(tapPort);
    machine = await startTestMachine({
      engine: 'builtin',
      training: 'real',
      base: made.base(),
      adapt: made.saying([['in bay', calls[kind] ?? ''], ...Object.entries(tellings), ['short sentence', 'Dry.']]),
      environment: {
        trainer: {
          BACKTALK_TRAINING_WORKER: `127.0.0.1:${String(tapPort)}`,
          BACKTALK_RECIPE_SET:
            'sampleTokensMax=4096,effective=2,effectiveMin=2,anchorsPerEffective=0,answerTokensMax=16',
        },
      },
    });
    tap.lead(`127.0.0.1:${String(machine.ports.grpc.trainingWorker)}`, machine.wire);
    book = await LogBook.open(machine);
  });

  afterAll(async () => {
    await book?.close();
    await machine?.stop();
    await tap.stop();
    made.remove();
  });

  async function ask(messages: readonly ChatCompletionMessageParam[], stream: boolean): Promise<Asked> {
    const client = new OpenAI({ baseURL: `${machine.gateway}/v1`, apiKey: 'none', maxRetries: 0 });
    const body = { model: 'backtalk', messages: [...messages], tools, max_tokens: 300, temperature: 1 };
    const { data, response } = stream
      ? await client.chat.completions.create({ ...body, stream: true }).withResponse()
      : await client.chat.completions.create(body).withResponse();
    const whole = 'choices' in data ? data : await gathered(data);
    const [choice] = whole.choices;
    if (choice === undefined) throw new RangeError('No choice came.');
    return {
      turn: response.headers.get('x-backtalk-turn') ?? '',
      messages,
      message: choice.message,
      finish: choice.finish_reason,
    };
  }

  /** A question, its call, what the tool says, what the model says on it, and a correction of that. */
  async function talk(bay: number, weather: string, stream: boolean): Promise<Asked[]> {
    const called = await ask([{ role: 'user', content: `Does it rain in bay ${String(bay)}?` }], stream);
    const [call] = called.message.tool_calls ?? [];
    if (call?.type !== 'function') throw new RangeError(`No call came: ${JSON.stringify(called.message)}`);
    const written = JSON.stringify(JSON.parse(call.function.arguments));
    const echoed = { ...called.message, tool_calls: [{ ...call, function: { ...call.function, arguments: written } }] };
    const result = { role: 'tool' as const, tool_call_id: call.id, content: weather };
    const told = await ask([...called.messages, echoed, result], stream);
    const corrected = await ask([...told.messages, told.message, { role: 'user', content: correction }], stream);
    return [called, told, corrected];
  }

  async function say(body: GeneratedTalk): Promise<{ readonly turn: string; readonly text: string }> {
    const response = await fetch(`${machine.gateway}/v1/chat/completions`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ model: 'backtalk', max_tokens: 4, ...body }),
      signal: AbortSignal.timeout(askMs),
    });
    const { choices } = said.parse(await response.json());
    return { turn: response.headers.get('x-backtalk-turn') ?? '', text: choices[0]?.message.content ?? '' };
  }

  it('calls a tool, its turns are one session, and all of them are trained with the prompt that was answered', async () => {
    const [first = '', second = ''] = Object.keys(tellings);
    const talks = [await talk(1, first, false), await talk(2, second, true)];
    for (const [at, turns] of talks.entries()) {
      expect(turns.map(({ finish }) => finish)).toEqual(['tool_calls', 'stop', 'stop']);
      expect(turns.map(({ message }) => message.content)).toEqual([null, Object.values(tellings)[at], 'Dry.']);
      const facts = [];
      for (const { turn, messages } of turns) {
        const fact = (
          await until(() => book.reader.last('turnCompleted', { turn }), { what: 'The turn is in the log' })
        ).message;
        expect(fact.promptIds).toEqual(await made.rendered(machine, { messages, tools }));
        expect(fact.untrainableReasons).toEqual([]);
        facts.push(fact);
      }
      const [called, told] = facts;
      const spoken = [...(called?.promptIds ?? []), ...(called?.answerIds ?? [])];
      expect(told?.promptIds.slice(0, spoken.length)).toEqual(spoken);
      const [asked = '', heard = '', answered = ''] = turns.map(({ turn }) => turn);
      const links = async () => {
        const { continued } = await book.read();
        return new Map(continued.map(({ message }) => [message.turn, message.continuedBy]));
      };
      await until(async () => (await links()).has(heard), { what: 'The turns are linked' });
      expect((await links()).get(asked)).toBe(heard);
      expect((await links()).get(heard)).toBe(answered);
    }
    await until(() => tap.requests.length > 0, { what: 'A step', timeoutMs: 180_000, everyMs: 250 });
    const samples = tap.requests[0]?.samples ?? [];
    // Without a teacher its prompt was rendered otherwise.
    expect(samples.map(({ teacherPromptIds }) => teacherPromptIds.length > 0)).toEqual(samples.map(() => true));
    const trained = async () => (await book.read()).trained[0]?.message.report;
    const report = await until(trained, { what: 'The step has ended', timeoutMs: 120_000, everyMs: 250 });
    expect(report.samples.map(({ dropped }) => dropped)).toEqual(samples.map(() => ''));
  });

  /** Which breakings of a kept request its prompt would have told. */
  async function toldBy(kept: KeptRequest, promptIds: readonly number[], of: readonly Breaking[]): Promise<Breaking[]> {
    const told: Breaking[] = [];
    for (const name of of) {
      const broken = breakings[name](kept);
      if (isDeepStrictEqual(broken, kept)) continue;
      // A template may refuse it, which tells as well.
      const ids = await made.rendered(machine, broken).catch(() => []);
      if (!isDeepStrictEqual(promptIds, ids)) told.push(name);
    }
    return told;
  }

  it('a model is shown for training what it was shown for answering, whatever agents sent', async () => {
    const random = randomFrom(talksSeed);
    const differing: unknown[] = [];
    const told = new Set<Breaking>();
    const all = Object.keys(breakings) as Breaking[];
    for (let talk = 0; talk < talksEach; talk += 1) {
      const { messages, ...rest } = generatedTalk(random);
      const first = await say({ messages, ...rest });
      const answer = { role: 'assistant', content: first.text };
      const second = await say({ messages: [...messages, answer, { role: 'user', content: correction }], ...rest });
      for (const { turn } of [first, second]) {
        const completed = async () => (await book.reader.last('turnCompleted', { turn }))?.message;
        const { promptIds } = await until(completed, { what: 'The answer is in the log' });
        // The second request is kept as what it added to the first.
        const kept = await until(() => book.conversation(turn), { what: 'The request is in the log' });
        const { messages: read, tools: offered, templateArguments } = kept;
        const template = { messages: read, tools: offered, chat_template_kwargs: templateArguments };
        if (!isDeepStrictEqual(promptIds, await made.rendered(machine, template))) differing.push(template);
        for (const name of await toldBy(
          template,
          promptIds,
          all.filter((one) => !told.has(one)),
        ))
          told.add(name);
      }
    }
    expect(differing).toEqual([]);
    // What a template does not show, no prompt tells.
    expect(all.filter((name) => !told.has(name))).toEqual(unseen[kind]);
  });
});
