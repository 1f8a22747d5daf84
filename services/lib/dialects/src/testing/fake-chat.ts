// Plans and writes the chat answers of a fake engine, whole or frame by frame, in vLLM's shape.
import type { FakeSettings } from './fake-settings.js';
import { messagesOf, type FakeChatRequest } from './fake-request.js';
import { endToken, fakeLogprobs, generate, templateIds, tokensOf, type FakeToken } from './fake-tokens.js';

/** All that will be said, before the first token is. */
export interface FakePlan {
  readonly id: string;
  readonly promptIds: readonly number[];
  readonly tokens: readonly FakeToken[];
  readonly logprobs: readonly number[];
  readonly finishReason: 'stop' | 'length' | 'tool_calls';
  /** The call that the tokens spell, which hides their text. */
  readonly tool: { readonly name: string; readonly arguments: string } | undefined;
}

export function planChat(
  request: FakeChatRequest,
  model: string,
  digest: string,
  settings: FakeSettings,
  number: number,
): FakePlan {
  const messages = messagesOf(request);
  const promptIds = templateIds(messages);
  const tool = toolOf(request);
  const said = tool === undefined ? settings.reply?.(messages, model) : `call ${tool.name} ${tool.arguments}`;
  const whole =
    said === undefined
      ? generate(digest, promptIds, request.seed ?? 0, settings.answerTokens)
      : [...tokensOf(said), endToken];
  const most = request.max_completion_tokens ?? request.max_tokens ?? settings.maxContext;
  const tokens = whole.slice(0, Math.min(most, settings.maxContext - promptIds.length));
  const cut = tokens.length < whole.length;
  return {
    id: `chatcmpl-fake${number}`,
    promptIds,
    tokens,
    logprobs: fakeLogprobs(
      digest,
      promptIds,
      tokens.map(({ id }) => id),
    ).map((logprob) => logprob * (settings.surprise?.(model) ?? 1)),
    finishReason: tool === undefined ? (cut ? 'length' : 'stop') : 'tool_calls',
    tool,
  };
}

/** A tool is called when the request insists on it. */
function toolOf({ tools, tool_choice: choice }: FakeChatRequest): FakePlan['tool'] {
  const first = tools?.[0];
  if (first === undefined || choice === undefined || choice === 'auto' || choice === 'none') return undefined;
  return { name: first.function.name, arguments: '{"city": "Paris"}' };
}

export interface Asked {
  readonly ids: boolean;
  readonly logprobs: boolean;
  readonly usage: boolean;
  readonly lie: FakeSettings['faults']['lie'];
  /** What the first frames call the weights, and what the last ones do. */
  readonly models: { readonly first: string; readonly last: string };
}

export function askedOf(request: FakeChatRequest, model: string, settings: FakeSettings): Asked {
  const { lie, models } = settings.faults;
  return {
    ids: request.return_token_ids === true && lie !== 'no_ids',
    logprobs: request.logprobs === true && lie !== 'no_logprobs',
    usage: request.stream_options?.include_usage === true,
    lie,
    models: { first: models?.first ?? model, last: models?.last ?? model },
  };
}

function head(plan: FakePlan, model: string): string {
  return `"id":"${plan.id}","object":"chat.completion.chunk","created":1,"model":${JSON.stringify(model)}`;
}

export function roleFrame(plan: FakePlan, asked: Asked): string {
  const ids = asked.ids ? JSON.stringify(plan.promptIds) : 'null';
  return `data: {${head(plan, asked.models.first)},"choices":[{"index":0,"delta":{"role":"assistant","content":""},"logprobs":null,"finish_reason":null}],"prompt_token_ids":${ids},"prompt_text":null}\n\n`;
}

/** The frame of one token; the last one's carries the finish reason. */
export function tokenFrame(plan: FakePlan, at: number, asked: Asked, finish: string | undefined): string {
  const token = plan.tokens[at] ?? endToken;
  const logprobs = asked.logprobs ? `{"content":[${tokenLogprob(plan, at, asked)}]}` : 'null';
  const ids = asked.ids ? `[${token.id}]` : 'null';
  const end = finish === undefined ? '"finish_reason":null' : `"finish_reason":"${finish}","stop_reason":null`;
  const model = finish === undefined ? asked.models.first : asked.models.last;
  return `data: {${head(plan, model)},"choices":[{"index":0,"delta":${deltaAt(plan, at, token)},"logprobs":${logprobs},${end},"token_ids":${ids}}]}\n\n`;
}

export function usageFrame(plan: FakePlan, tokens: number, asked: Asked): string {
  return `data: {${head(plan, asked.models.last)},"choices":[],"usage":${JSON.stringify(usageOf(plan, tokens, asked))}}\n\n`;
}

export function wholeAnswer(plan: FakePlan, asked: Asked): unknown {
  const content = plan.tool === undefined ? plan.tokens.map(({ text }) => text).join('') : '';
  const calls = plan.tool && [{ id: `call-${plan.id}`, type: 'function', function: plan.tool }];
  const logprobs = plan.tokens.map((_, at) => tokenLogprob(plan, at, asked)).join(',');
  return {
    id: plan.id,
    object: 'chat.completion',
    created: 1,
    model: asked.models.first,
    choices: [
      {
        index: 0,
        message: { role: 'assistant', content, reasoning: null, ...(calls ? { tool_calls: calls } : {}) },
        logprobs: asked.logprobs ? { content: JSON.parse(`[${logprobs}]`) as unknown } : null,
        finish_reason: plan.finishReason,
        stop_reason: null,
        token_ids: asked.ids ? plan.tokens.map(({ id }) => id) : null,
      },
    ],
    usage: usageOf(plan, plan.tokens.length, asked),
    prompt_logprobs: null,
    prompt_token_ids: asked.ids ? plan.promptIds : null,
  };
}

function tokenLogprob(plan: FakePlan, at: number, asked: Asked): string {
  const token = plan.tokens[at] ?? endToken;
  const logprob = asked.lie === 'not_finite' ? -9999 : (plan.logprobs[at] ?? 0);
  return `{"token":${JSON.stringify(token.text)},"logprob":${logprob},"bytes":[],"top_logprobs":[]}`;
}

/** A call's name comes with its first token, its arguments with the second; its tokens have no text. */
function deltaAt(plan: FakePlan, at: number, token: FakeToken): string {
  if (plan.tool === undefined) return `{"content":${JSON.stringify(token.text)}}`;
  if (at === 0) {
    const call = { id: `call-${plan.id}`, type: 'function', index: 0, function: { name: plan.tool.name } };
    return JSON.stringify({ content: null, tool_calls: [call] });
  }
  if (at > 1) return '{}';
  return JSON.stringify({ tool_calls: [{ index: 0, function: { arguments: plan.tool.arguments } }] });
}

function usageOf(plan: FakePlan, tokens: number, { lie }: Asked) {
  const completion = lie === 'wrong_count' ? tokens + 1 : tokens;
  const prompt = plan.promptIds.length;
  return { prompt_tokens: prompt, total_tokens: prompt + completion, completion_tokens: completion };
}
