// Votes of a model at an OpenAI-compatible address: what it is sent, what it may refuse, how votes wait for it, and what they cost.
import { until } from '@backtalk/kit/testing';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import type { JudgeConfig } from './config.js';
import { tokensIn } from './domain/prompt-room.js';
import { JudgeRig } from './testing/judge-rig.js';
import {
  completion,
  startScriptedJudge,
  type HeardRequest,
  type ScriptedAnswer,
  type ScriptedJudge,
} from './testing/scripted-judge.js';

let rig: JudgeRig;
let model: ScriptedJudge;

beforeAll(async () => {
  rig = await JudgeRig.start();
});
afterAll(() => rig.stop());
beforeEach(async () => {
  model = await startScriptedJudge(() => thanked);
});
afterEach(async () => {
  await rig.stopJudges();
  await model.stop();
});

const answer = { content: '{"thought": "Thanks were said.", "hint": "", "grade": 1}' };
const thanked: ScriptedAnswer = { body: completion(answer) };
const refused = (message: string, status = 400, more: object = {}): ScriptedAnswer => ({
  status,
  body: { error: { message, type: 'invalid_request_error', param: null, code: null, ...more } },
});

/** No vote is taken for lost and cast again, however slow the machine is: requests are counted here. */
const ackWaitMs = 60_000;

const judgeWith = (settings: Partial<JudgeConfig> = {}) =>
  rig.judge({ engineUrls: [model.url], engineDialect: 'openai', voteConcurrency: 1, ackWaitMs, ...settings });
const judged = async (text = 'Perfect, thank you!') => rig.untilJudged(await rig.turn([{ text }]));
const promptOf = ({ messages }: HeardRequest) => messages.map(({ role, content }) => `${role}\n${content}`).join('\n');
const isValid = ({ valid, verdict }: { valid: boolean; verdict: number }) => valid && verdict === 1;

describe('a request for a vote', () => {
  it('a judge that reads has the form of its answer forced and thoughts switched off', async () => {
    await judgeWith();
    await judged();
    expect(model.heard[0]).toMatchObject({
      max_tokens: 512,
      chat_template_kwargs: { enable_thinking: false },
      response_format: {
        type: 'json_schema',
        json_schema: { strict: true, schema: { required: ['thought', 'hint', 'grade'] } },
      },
    });
    expect(model.heard[0]).not.toHaveProperty('thinking_token_budget');
  });

  it('a vote has tokens of its own for thoughts where they are paid for', async () => {
    await judgeWith({ thinkingTokens: 2_048 });
    await judged();
    const thinking = {
      max_tokens: 2_560,
      thinking_token_budget: 2_048,
      chat_template_kwargs: { enable_thinking: true },
    };
    expect(model.heard[0]).toMatchObject(thinking);
  });

  it('a model that has no room for the turn beside its thoughts casts no vote', async () => {
    await judgeWith({ thinkingTokens: 31_500, verdictTokens: 300_000 });
    const { votes, verdict } = await judged();
    expect(votes.map(({ reason }) => reason)).toEqual(['no_room', 'no_room', 'no_room']);
    expect(verdict).toBe(0);
    expect(model.heard).toEqual([]);
  });

  it('shares all but its last words with the other votes of its turn', async () => {
    await judgeWith();
    await judged();
    const prompts = model.heard.map(promptOf);
    expect(new Set(prompts).size).toBe(3);
    const [first = ''] = prompts;
    const shared = [...first].findIndex((character, at) => prompts.some((prompt) => prompt[at] !== character));
    expect(shared / Math.max(...prompts.map(({ length }) => length))).toBeGreaterThan(0.9);
    expect(new Set(model.heard.map(({ seed }) => seed)).size).toBe(3);
  });

  it('stays within the tokens of a verdict, all votes together', async () => {
    await judgeWith({ verdictTokens: 6_000 });
    await judged(`Too long. ${'word '.repeat(5_000)} Shorter!`);
    const spent = model.heard.map((request) => tokensIn(promptOf(request)) + Number(request['max_tokens']));
    expect(spent).toHaveLength(3);
    expect(spent.reduce((sum, tokens) => sum + tokens)).toBeLessThanOrEqual(6_000);
    expect(promptOf(model.heard[0] ?? { model: '', messages: [] })).toMatch(/Too long\.[\s\S]*Shorter!/);
  });
});

describe('an engine that refuses a part of it', () => {
  it('a model that refuses a field is asked once without it, and never again with it', async () => {
    model.script = (request) => ('response_format' in request ? refused('extra fields not permitted') : thanked);
    const judge = await judgeWith();
    expect((await judged()).votes.every(isValid)).toBe(true);
    expect((await judged()).votes.every(isValid)).toBe(true);
    expect(model.heard).toHaveLength(7);
    expect(model.heard.slice(1).every((request) => !('chat_template_kwargs' in request))).toBe(true);
    expect(promptOf(model.heard[1] ?? { model: '', messages: [] })).toContain('\\boxed{+1}');
    expect(await rig.metric(judge, 'fields_refused{field="response_format"}')).toBe(1);
    expect(await rig.metric(judge, 'requests_total{outcome="invalid_request"}')).toBe(1);
  });

  it('keeps all but the field that it names, whatever hosted models mind', async () => {
    model.script = (request) => {
      if ('chat_template_kwargs' in request)
        return refused('Unrecognized request argument supplied: chat_template_kwargs');
      if ('max_tokens' in request) return refused('Use max_completion_tokens.', 400, { param: 'max_tokens' });
      if ('temperature' in request) return refused('Only the default is supported.', 400, { param: 'temperature' });
      return thanked;
    };
    await judgeWith();
    expect((await judged()).votes.every(isValid)).toBe(true);
    expect(model.heard).toHaveLength(6);
    expect(model.heard.at(-1)).toMatchObject({ max_completion_tokens: 512, response_format: { type: 'json_schema' } });
  });

  it.each([
    ['a list of details', { detail: [{ type: 'extra_forbidden', loc: ['body', 'seed'], msg: 'Not permitted' }] }],
    ['a list of errors', [{ error: { code: 400, message: 'Unknown name', status: 'INVALID_ARGUMENT' } }]],
  ])('a model that refuses the seed by %s is asked without it', async (_form, body) => {
    model.script = (request) => ('seed' in request ? { status: 422, body } : thanked);
    await judgeWith();
    expect((await judged()).votes.every(isValid)).toBe(true);
    expect(model.heard.at(-1)).toHaveProperty('temperature');
  });

  it.each([408, 409, 425])(
    'a refusal that passes (%i) says nothing of fields: the same is asked again',
    async (status) => {
      let refusals = 0;
      model.script = () => (refusals++ === 0 ? refused('Wait.', status) : thanked);
      const judge = await judgeWith();
      expect((await judged()).votes.every(isValid)).toBe(true);
      expect(model.heard.every((request) => 'response_format' in request)).toBe(true);
      expect(await rig.metric(judge, 'fields_refused{field="response_format"}')).toBe(0);
    },
  );

  it('nothing is learned of fields where the same is refused without them', async () => {
    model.script = () => refused('This prompt is refused.');
    const judge = await judgeWith();
    expect((await judged()).votes.map(({ reason }) => reason)).toEqual(['engine', 'engine', 'engine']);
    expect(await rig.metric(judge, 'fields_refused{field="response_format"}')).toBe(0);
    expect(model.heard.filter((request) => 'response_format' in request).length).toBeGreaterThan(3);
  });

  it.each(['prompt', 'messages[0].content'])('a prompt refused as %s is asked in no other form', async (param) => {
    model.script = () => refused('The prompt was filtered.', 400, { param, code: 'content_filter' });
    await judgeWith();
    expect((await judged()).votes.map(({ reason }) => reason)).toEqual(['engine', 'engine', 'engine']);
    expect(model.heard.every((request) => 'response_format' in request)).toBe(true);
    expect(model.heard).toHaveLength(9);
  });

  it('a model whose template knows no system message is told all in one', async () => {
    model.script = ({ messages }) =>
      messages.some(({ role }) => role === 'system') ? refused('System role not supported') : thanked;
    await judgeWith();
    expect((await judged()).votes.every(isValid)).toBe(true);
    expect(model.heard).toHaveLength(4);
    expect(model.heard.at(-1)).toHaveProperty('response_format');
    expect(model.heard.at(-1)?.messages).toHaveLength(1);
    expect(promptOf(model.heard.at(-1) ?? { model: '', messages: [] })).toContain('You grade answers');
  });

  it('a host that takes no request of that size is shown less', async () => {
    const most = 5_000;
    model.script = (request) => (promptOf(request).length > most ? refused('Request too large.', 413) : thanked);
    await judgeWith({ verdictTokens: 9_000 });
    expect((await judged(`Longer. ${'word '.repeat(2_000)}`)).votes.every(isValid)).toBe(true);
    expect(model.heard.some((request) => promptOf(request).length > most)).toBe(true);
    expect(model.heard.every((request) => 'response_format' in request)).toBe(true);
  });

  it('a model that counts more tokens than were estimated is shown less', async () => {
    const most = 6_000;
    model.script = (request) =>
      promptOf(request).length > most ? refused(`This model's maximum context length is 2000 tokens.`) : thanked;
    await judgeWith();
    expect((await judged(`Longer. ${'word '.repeat(2_000)}`)).votes.every(isValid)).toBe(true);
    expect(model.heard.filter((request) => promptOf(request).length <= most)).toHaveLength(3);
  });
});

describe('an engine that has no time', () => {
  it('a model at its limit is left alone as long as it asks, and every vote is cast after that', async () => {
    model.script = () =>
      model.heard.length === 1 ? { ...refused('Slow down.', 429), headers: { 'retry-after': '1' } } : thanked;
    const judge = await judgeWith();
    expect((await judged()).votes.every(isValid)).toBe(true);
    expect(model.heard).toHaveLength(4);
    expect(await rig.metric(judge, 'requests_total{outcome="engine_overloaded"}')).toBe(1);
    expect(await rig.metric(judge, 'jobs_handled_total{queue="judge-votes",outcome="waited"}')).toBeGreaterThan(0);
  });

  it('a model at its limit is left alone by every judge that shares the queue, and not only by the one that it told', async () => {
    let firstAt: number | undefined;
    const askedMs = 1_000;
    model.script = () => {
      firstAt ??= performance.now();
      const isLimited = performance.now() - firstAt < askedMs / 2;
      return isLimited ? { ...refused('Slow down.', 429), headers: { 'retry-after': '1' } } : thanked;
    };
    await Promise.all([judgeWith({ votes: 1 }), judgeWith({ votes: 1 })]);
    expect((await judged()).votes.every(isValid)).toBe(true);
    expect(model.heard).toHaveLength(2);
  });

  it('counts no try against a vote: not for 429, not for a proxy without it, not for a key that it refuses', async () => {
    const statuses = [429, 429, 429, 429, 502, 504, 529, 502, 503, 401, 402, 403, 401];
    model.script = () => {
      const status = statuses.shift();
      return status === undefined ? thanked : refused('Not now.', status);
    };
    await judgeWith();
    expect((await judged()).votes.every(isValid)).toBe(true);
    expect(statuses).toEqual([]);
  });

  it('counts no try against a vote where the key is refused as a bad request', async () => {
    const refusals = Array.from({ length: 40 }, () => refused('API key not valid. Please pass a valid API key.'));
    model.script = () => refusals.pop() ?? thanked;
    await judgeWith();
    expect((await judged()).votes.every(isValid)).toBe(true);
    expect(refusals).toEqual([]);
  });

  it('makes a vote null that fails or hangs three times, and holds no other up', async () => {
    model.script = ({ seed }) => (seed === model.heard[0]?.['seed'] ? refused('It broke.', 500) : thanked);
    await judgeWith();
    const { votes, verdict } = await judged();
    expect(votes.map(({ valid, reason }) => [valid, reason])).toContainEqual([false, 'engine']);
    expect(votes.filter(isValid)).toHaveLength(2);
    expect(verdict).toBe(1);
  });
});

describe('what votes cost', () => {
  it('what a vote uses is counted in tokens, by what the cache had, and in money at the prices that are set', async () => {
    model.script = () => ({ body: completion(answer, 'stop', { prompt_tokens_details: { cached_tokens: 60 } }) });
    const judge = await judgeWith({ pricePrompt: 1, priceCached: 0.5, priceAnswer: 2 });
    await judged();
    await until(async () => (await rig.metric(judge, 'requests_total{outcome="answered"}')) === 3);
    const tokens = (kind: string) => rig.metric(judge, `tokens_total{kind="${kind}"}`);
    expect([await tokens('prompt'), await tokens('cached'), await tokens('answer')]).toEqual([120, 180, 60]);
    expect(await rig.metric(judge, 'cost_total')).toBeCloseTo((3 * (40 + 30 + 40)) / 1e6, 12);
  });

  it.each([
    [
      'more of the cache than there was of a prompt',
      { prompt_tokens: 40, prompt_tokens_details: { cached_tokens: 60 } },
    ],
    ['no number', { prompt_tokens: 'many', completion_tokens: -1 }],
  ])('a vote counts whose engine tells %s', async (_what, usage) => {
    model.script = () => ({ body: completion(answer, 'stop', usage) });
    await judgeWith({ pricePrompt: 1, priceCached: 0.1, priceAnswer: 0 });
    expect((await judged()).votes.every(isValid)).toBe(true);
    expect(model.heard).toHaveLength(3);
  });

  it('names an answer that was cut before its grade', async () => {
    model.script = () => ({ body: completion({ content: '{"thought": "The user' }, 'length') });
    await judgeWith();
    expect((await judged()).votes.map(({ reason }) => reason)).toEqual(['cut', 'cut', 'cut']);
  });
});
