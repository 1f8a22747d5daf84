// What becomes of each option of a chat request: whether it is served, and whether its turn trains. The same options stand in
// docs/agents.md, with the reasons.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type OpenAI from 'openai';
import { repositoryRoot, until } from '@backtalk/kit/testing';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { startConversing, type Conversing, type LeasedEngine, type Surroundings } from '../testing/started-gateway.js';

let conversing: Conversing;
let around: Surroundings;
let leased: LeasedEngine;
let client: OpenAI;
let heard: Record<string, unknown>[] = [];

const messages = [{ role: 'user' as const, content: 'Hello there' }];

beforeAll(async () => {
  conversing = await startConversing({ dialect: 'vllm' });
  ({ around, leased, client } = conversing);
  leased.engine.settings.heard = (body) => heard.push(body as Record<string, unknown>);
});

afterAll(() => conversing.stop());

const trains: readonly string[] = [];
const notPlain = ['sampler_not_plain'];
const refused = 'unsupported_parameter';
const json = { type: 'json_schema', json_schema: { name: 'a', schema: { type: 'object' } } };
const read = { type: 'function', function: { name: 'read', parameters: { type: 'object' } } };
const forced = { type: 'function', function: { name: 'read' } };

/** As in the document; what is sent; the reasons against training, none where the turn trains, or the code of a refusal. */
const rows: readonly (readonly [
  option: string,
  fields: Readonly<Record<string, unknown>>,
  fate: readonly string[] | string,
])[] = [
  ['`temperature`', { temperature: 0.3 }, trains],
  ['`temperature: 0`', { temperature: 0 }, trains],
  ['`top_p` below 1', { top_p: 0.9 }, notPlain],
  ['`top_k`', { top_k: 40 }, notPlain],
  ['`min_p`', { min_p: 0.1 }, notPlain],
  ['`n: 1`', { n: 1 }, trains],
  ['`n` above 1', { n: 2 }, refused],
  ['`stop`', { stop: ['END'] }, trains],
  ['`stop_token_ids`', { stop_token_ids: [7] }, trains],
  ['`logit_bias`', { logit_bias: { '5': 10 } }, notPlain],
  ['`seed`', { seed: 4 }, trains],
  ['`presence_penalty`', { presence_penalty: 0.5 }, notPlain],
  ['`frequency_penalty`', { frequency_penalty: 0.5 }, notPlain],
  ['`repetition_penalty`', { repetition_penalty: 1.1 }, notPlain],
  ['`min_tokens`', { min_tokens: 2 }, notPlain],
  ['`max_tokens`', { max_tokens: 5 }, trains],
  ['`max_completion_tokens`', { max_completion_tokens: 5 }, trains],
  ['`logprobs`, `top_logprobs`', { logprobs: true, top_logprobs: 2 }, trains],
  ['`response_format: text`', { response_format: { type: 'text' } }, trains],
  ['`response_format: json_object`', { response_format: { type: 'json_object' } }, notPlain],
  ['`response_format: json_schema`', { response_format: json }, notPlain],
  ['`structured_outputs`', { structured_outputs: { choice: ['a', 'b'] } }, notPlain],
  ['`bad_words`', { bad_words: ['x'] }, notPlain],
  ['`allowed_token_ids`', { allowed_token_ids: [1, 2] }, notPlain],
  ['`tools`, `tool_choice: auto`', { tools: [read], tool_choice: 'auto' }, trains],
  ['`tool_choice: none`', { tools: [read], tool_choice: 'none' }, trains],
  ['`tool_choice: required`', { tools: [read], tool_choice: 'required' }, notPlain],
  ['`tool_choice` that names one', { tools: [read], tool_choice: forced }, notPlain],
  ['`parallel_tool_calls`', { tools: [read], parallel_tool_calls: false }, trains],
  ['`stream`', { stream: true }, trains],
  ['`stream` with `tools`', { stream: true, tools: [read], tool_choice: 'auto' }, trains],
  ['`stream` with a forced call', { stream: true, tools: [read], tool_choice: forced }, notPlain],
  ['`stream_options`', { stream: true, stream_options: { include_usage: true } }, trains],
  ['`chat_template_kwargs`', { chat_template_kwargs: { enable_thinking: false } }, trains],
  ['`reasoning_effort`', { reasoning_effort: 'low' }, trains],
  ['`user`, `metadata`, `store`', { user: 'ann', metadata: { run: '7' }, store: false }, trains],
  ['`logits_processors`', { logits_processors: ['x'] }, refused],
  ['`guided_regex`', { guided_regex: 'a+' }, refused],
  ['`best_of`', { best_of: 2 }, refused],
];
/** That no engine is sent. */
const kept = new Set(['user', 'metadata', 'store', 'stream_options', 'logprobs', 'tools']);

interface Said {
  readonly id: string;
}

async function ask(fields: Readonly<Record<string, unknown>>): Promise<string> {
  const body = { model: 'backtalk', messages, ...fields };
  if (fields['stream'] !== true) return (await client.post<Said>('/chat/completions', { body })).id;
  const stream = await client.chat.completions.create(body as OpenAI.ChatCompletionCreateParamsStreaming);
  let id = '';
  for await (const chunk of stream) id = chunk.id;
  return id;
}

describe('an option of a chat request', () => {
  it.each(rows)('%s %j has its fate', async (_option, fields, fate) => {
    heard = [];
    if (typeof fate === 'string') {
      await expect(ask(fields)).rejects.toMatchObject({ status: 400, code: fate });
      expect(heard).toEqual([]);
      return;
    }
    const turn = await ask(fields);
    const fact = await until(() => around.reader.last('turnCompleted', { turn }), {
      what: `turn.completed of ${turn}`,
    });
    expect(fact.message.untrainableReasons).toEqual(fate);
    const sent = Object.entries(fields).filter(([name]) => !kept.has(name));
    expect(heard[0]).toMatchObject(Object.fromEntries(sent));
  });

  it('stands in the documentation, and no other does', () => {
    const text = readFileSync(join(repositoryRoot(), 'docs', 'agents.md'), 'utf8');
    const [, table = ''] = /\n## Options of a request\n([^]*?)(?=\n## |$)/.exec(text) ?? [];
    const lines = table.split('\n').filter((line) => line.startsWith('| '));
    const cells = lines.slice(2).map((line) => line.split(' | ').map((cell) => cell.replaceAll(/^\| |\s+$/g, '')));
    const fateOf = (fate: readonly string[] | string) =>
      typeof fate === 'string' ? ['no', 'no'] : ['yes', fate.length === 0 ? 'yes' : 'no'];
    expect(cells.map(([option, served, training]) => [option, served, training])).toEqual(
      rows.map(([option, , fate]) => [option, ...fateOf(fate)]),
    );
  });
});
