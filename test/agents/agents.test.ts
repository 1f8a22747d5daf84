import { freePort, until } from '@backtalk/kit/testing';
import { Provenance, type TurnCompleted, type TurnContinued } from '@backtalk/proto/facts';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { sha256Hex } from '@backtalk/kit';
import { LogBook } from '../loop/fact-log.js';
import { setPaused } from '../loop/learning-switch.js';
import { startTestMachine, type TestMachine } from '../loop/machine.js';
import { MadeModel, type GivenAnswer } from '../loop/made-model.js';
import { TrainingTap } from '../loop/training-tap.js';
import { ask, type Message } from '../loop/talk.js';
import { clients, type AgentTool } from './clients.js';
import { refusals } from './refusals.js';
import { Wire, type Exchange } from './wire.js';

// The agent clients that people use, unchanged, talk to a model of Qwen3's shape with random weights and a context of 16,384, whose
// answers are given to it: it thinks, calls two tools one after the other, and is corrected. All of it must train.
const context = 16_384;
const correction = 'No, that is wrong. From now on always answer in one short sentence.';
const corrected = 'Dry.';
const resigned = 'As you wish.';

interface Scene {
  readonly client: string;
  readonly place: string;
  readonly thinks: boolean;
  /** Characters, each about a token of the made model, of what the agent tells the model to be. */
  readonly systemCharacters: number;
}

/** Places that have little in common: turns that are alike are not trained on twice. */
const places = [
  'Rome',
  'Isfahan',
  'Quy Nhon',
  'Zutphen',
  'Mbabane',
  'Clyde',
  'Oban',
  'Xi’an',
  'Luleå',
  'Pärnu',
  'Ghent',
  'Jeju',
];
const scenes: readonly Scene[] = Object.keys(clients).map((client, at) => ({
  client,
  place: places[at] ?? '',
  thinks: at % 2 === 1,
  systemCharacters: at === 0 ? 9_000 : 1_000,
}));

const tools: readonly AgentTool[] = [
  { name: 'rain', description: 'Whether it rains at a place.', run: (place) => `rain over ${place}: none` },
  { name: 'tide', run: (place) => `tide at ${place}: high` },
];

function called(tool: string, place: string): string {
  return `<tool_call>\n{"name": "${tool}", "arguments": {"place": "${place}"}}\n</tool_call>`;
}

function answersOf({ place, thinks }: Scene): GivenAnswer[] {
  const thought = (text: string) => (thinks ? `<think>\n${text}\n</think>\n\n` : '');
  return [
    [`water of ${place}?`, `${thought(`The sky over ${place} first.`)}${called('rain', place)}`],
    [`rain over ${place}`, called('tide', place)],
    [`tide at ${place}`, `${thought('Both are known.')}${place} is dry above, and the sea there stands high.`],
  ];
}

/** As long as agents' instructions are, and no two alike. */
function systemOf({ client, systemCharacters }: Scene): string {
  let text = `You serve ${client}.`;
  for (let rule = 0; text.length < systemCharacters; rule += 1)
    text += ` Rule ${sha256Hex(Buffer.from(`${client} ${String(rule)}`))}.`;
  return text.slice(0, systemCharacters);
}

const made = new MadeModel('qwen3', context);
const tap = new TrainingTap();
const heard = new Map<string, readonly Exchange[]>();
let machine: TestMachine;
let book: LogBook;

beforeAll(async () => {
  const tapPort = await freePort();
  await tap.start(tapPort);
  const answers: GivenAnswer[] = [
    ...scenes.flatMap((scene) => answersOf(scene)),
    ['one short sentence', corrected],
    ['Refused: how is', called('rain', 'the harbour')],
    ['Tool call execution denied.', resigned],
    ['User rejected the tool call', resigned],
  ];
  machine = await startTestMachine({
    engine: 'builtin',
    training: 'real',
    base: made.base(),
    adapt: made.saying(answers),
    environment: {
      // The AI SDK names none where it asks Anthropic's API for thoughts, and the made model's logprobs are those at 1.
      gateway: { BACKTALK_TEMPERATURE: '1' },
      trainer: {
        BACKTALK_TRAINING_WORKER: `127.0.0.1:${String(tapPort)}`,
        // A batch as soon as the last client has been corrected, with all of their turns in it.
        BACKTALK_RECIPE_SET: `sampleTokensMax=${String(context)},effective=${String(scenes.length)},anchorsPerEffective=8,answerTokensMax=64,optimizerSteps=1`,
      },
    },
  });
  tap.lead(`127.0.0.1:${String(machine.ports.grpc.trainingWorker)}`, machine.wire);
  book = await LogBook.open(machine);
  await setPaused(machine, true);
});

afterAll(async () => {
  await book?.close();
  await machine?.stop();
  await tap.stop();
  made.remove();
});

function completed(turn: string): Promise<TurnCompleted> {
  return until(async () => (await book.reader.last('turnCompleted', { turn }))?.message, {
    what: `The answer of ${turn}`,
  });
}

function continued(turn: string): Promise<TurnContinued> {
  return until(async () => (await book.reader.last('turnContinued', { turn }))?.message, {
    what: `What follows ${turn}`,
  });
}

describe.each(scenes)('$client', (scene) => {
  const { client, place, thinks } = scene;

  it(`${client} calls tools and is corrected, in one session that nobody named and with prompts that render again`, async () => {
    const wire = new Wire();
    const said = await clients[client]?.({
      baseURL: `${machine.gateway}/v1`,
      fetch: wire.fetch,
      system: systemOf(scene),
      thinks,
      tools,
      says: [`How is the water of ${place}?`, correction],
    });
    expect(said).toBe(corrected);
    heard.set(client, wire.exchanges);
    expect(wire.exchanges.map(({ status, sessionHeaders }) => [status, sessionHeaders])).toEqual(
      Array(4).fill([200, []]),
    );
    expect(wire.exchanges.map(({ body }) => body.stream ?? false)).toEqual(Array(4).fill(/stream/i.test(client)));
    const turns = wire.exchanges.map(({ turn }) => turn);
    const answers = await Promise.all(turns.map((turn) => completed(turn)));
    expect(answers.map(({ untrainableReasons }) => untrainableReasons)).toEqual(Array(4).fill([]));
    expect(answers.map(({ finishReason }) => finishReason)).toEqual(['tool_calls', 'tool_calls', 'stop', 'stop']);
    expect(answers[0]?.reasoning).toBe(thinks ? `The sky over ${place} first.` : '');
    for (const [at, { body, path }] of wire.exchanges.entries()) {
      const { messages = [], tools: offered, chat_template_kwargs } = body;
      // What came by another API is rendered again in the step, below: no other prompt keeps its teacher.
      if (path !== '/v1/chat/completions') continue;
      expect(answers[at]?.promptIds).toEqual(
        await made.rendered(machine, { messages, tools: offered, chat_template_kwargs }),
      );
    }
    const links = await Promise.all(turns.slice(0, -1).map((turn) => continued(turn)));
    expect(links.map(({ continuedBy }) => continuedBy)).toEqual(turns.slice(1));
    expect(new Set(links.map(({ session }) => session)).size).toBe(1);
    const { PROVENANCE_TOOL: tool, PROVENANCE_USER: user } = Provenance;
    expect(
      links.map(({ nextState }) => nextState.map(({ provenance, toolName, text }) => [provenance, toolName, text])),
    ).toEqual([
      [[tool, 'rain', `rain over ${place}: none`]],
      [[tool, 'tide', `tide at ${place}: high`]],
      [[user, '', correction]],
    ]);
    const judged = await until(async () => (await book.reader.last('turnJudged', { turn: turns[2] ?? '' }))?.message, {
      what: 'A verdict on what was corrected',
    });
    expect(judged).toMatchObject({ verdict: -1, hint: correction });
  });
});

it.each([
  ['AI SDK streamText, Responses', 'item_reference'],
  ['OpenAI agents SDK, by response ids', 'previous_response_id'],
])('%s leaves what was said to the log', (client, word) => {
  expect(JSON.stringify(heard.get(client)?.at(-1)?.body)).toContain(`"${word}"`);
});

it('all turns of all clients are trained on in a step, none without its teacher, and the version answers', async () => {
  const turns = [...heard.values()].flatMap((exchanges) => exchanges.slice(0, -1).map(({ turn }) => turn));
  expect(turns).toHaveLength(3 * scenes.length);
  await until(() => book.isTakenIn(), { what: 'All turns are judged', everyMs: 100 });
  await setPaused(machine, false);
  const swapped = async () => (await book.stable()) !== 'backtalk-v0';
  await until(swapped, { what: 'The first version answers', timeoutMs: 600_000, everyMs: 250 });
  const asked = tap.requests.flatMap(({ samples }) => samples);
  expect(asked.map(({ turn }) => turn).sort()).toEqual([...turns].sort());
  // A sample whose prompt renders otherwise than it was captured loses its teacher (template_mismatch).
  expect(asked.filter(({ teacherPromptIds }) => teacherPromptIds.length === 0)).toEqual([]);
  const { trained } = await book.read();
  expect(trained.flatMap(({ message }) => message.report?.samples ?? []).map(({ dropped }) => dropped)).toEqual(
    turns.map(() => ''),
  );
});

describe.each(Object.keys(refusals))('a person who refuses a call of an agent by %s', (by) => {
  it(`a call that is refused as ${by} does it is the next state of a bad answer`, async () => {
    const wire = new Wire();
    const place = `the harbour of ${by}`;
    const baseURL = `${machine.gateway}/v1`;
    const asked = { baseURL, fetch: wire.fetch, tool: 'rain', asks: `Refused: how is the water of ${place}?` };
    expect(await refusals[by]?.(asked)).toBe(resigned);
    const [first, second] = wire.exchanges.map(({ turn }) => turn);
    const { continuedBy, nextState } = await continued(first ?? '');
    expect(continuedBy).toBe(second);
    expect(nextState).toMatchObject([{ provenance: Provenance.PROVENANCE_TOOL, toolName: 'rain' }]);
    const judged = await until(async () => (await book.reader.last('turnJudged', { turn: first ?? '' }))?.message, {
      what: 'A verdict on the call',
    });
    expect(judged.verdict).toBe(-1);
    expect(judged.evidence).toContainEqual({ name: 'tool_refused', verdict: -1, detail: by });
  });
});

it('an answer that a person has made again is judged by that, once they go on from the other one', async () => {
  const say = (messages: readonly Message[]) => ask(machine.gateway, { messages, maxTokens: 24 });
  const question: Message = { role: 'user', content: 'What is known of lighthouses?' };
  const first = await say([question]);
  const history: Message[] = [
    question,
    { role: 'assistant', content: first.text },
    { role: 'user', content: 'And of the keepers?' },
  ];
  const [setAside, kept] = [await say(history), await say(history)];
  await say([...history, { role: 'assistant', content: kept.text }, { role: 'user', content: 'Thanks, that helps.' }]);
  expect(await continued(setAside.turn)).toMatchObject({ act: 'regenerated', continuedBy: kept.turn, nextState: [] });
  expect(await continued(kept.turn)).toMatchObject({ act: '', parent: first.turn });
  const judged = await until(async () => (await book.reader.last('turnJudged', { turn: setAside.turn }))?.message, {
    what: 'A verdict on what was set aside',
  });
  expect(judged).toMatchObject({ verdict: -1, evidence: [{ name: 'regenerated', verdict: -1, detail: '' }] });
});
