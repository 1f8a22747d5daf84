// The paths of a fake engine.
//
// In: a request. Out: a whole answer to be written, or undefined when the answer was streamed or is withheld.
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { z } from 'zod';
import { refusal, type FakeAnswer } from './fake-adapters.js';
import { askedOf, planChat, wholeAnswer } from './fake-chat.js';
import { promptsOf, wholeCompletion } from './fake-completions.js';
import type { FakeState } from './fake-state.js';
import {
  chatRequest,
  completionRequest,
  loadRequest,
  messagesOf,
  readJson,
  tokenizeRequest,
  unloadRequest,
} from './fake-request.js';
import { pause, streamChat } from './fake-stream.js';
import { templateIds, tokensOf, type FakeMessage } from './fake-tokens.js';

type Given<T> = { readonly ok: true; readonly value: T } | { readonly ok: false; readonly answer: FakeAnswer };

export async function routeFake(
  state: FakeState,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<FakeAnswer | undefined> {
  const path = request.url?.split('?')[0] ?? '';
  switch (`${request.method ?? ''} ${path}`) {
    case 'GET /health':
      return { status: state.settings.faults.dead === true ? 503 : 200, body: undefined };
    case 'GET /v1/models':
      return { status: 200, body: modelList(state) };
    case 'GET /metrics':
      return metrics(state, response);
    case 'GET /fake/counts':
      return { status: 200, body: { ...state.counts, adapters: state.adapters.names } };
    case 'POST /fake/settings':
      Object.assign(state.settings, await readJson(request));
      return { status: 200, body: {} };
    case 'POST /fake/forget':
      state.adapters.forget();
      return { status: 200, body: {} };
    case 'POST /tokenize':
      return tokenize(state, await readJson(request));
    case 'POST /v1/chat/completions':
      return chat(state, await readJson(request), response);
    case 'POST /v1/completions':
      return completions(state, await readJson(request), response);
    case 'POST /v1/load_lora_adapter':
      return load(state, await readJson(request));
    case 'POST /v1/unload_lora_adapter':
      return unload(state, await readJson(request));
    default:
      return { status: 404, body: { detail: 'Not Found' } };
  }
}

async function chat(state: FakeState, body: unknown, response: ServerResponse): Promise<FakeAnswer | undefined> {
  state.settings.heard?.(body);
  const given = read(chatRequest, body);
  if (!given.ok) return given.answer;
  const request = given.value;
  const model = request.model ?? state.baseModel;
  if (request.tools !== undefined && state.settings.faults.lacks === 'tools')
    return refusal(400, '"auto" tool choice requires --enable-auto-tool-choice', 'BadRequestError');
  const most = request.max_completion_tokens ?? request.max_tokens ?? 1;
  if (most > state.settings.maxContext) return unbounded(state, most);
  return work(state, model, response, async (digest) => {
    const plan = planChat(request, model, digest, state.settings, state.counts.requests);
    if (plan.promptIds.length >= state.settings.maxContext) return overflow(state, plan.promptIds.length);
    const asked = askedOf(request, model, state.settings);
    if (request.stream === true) return streamChat(state, plan, asked, response);
    await pause(state.settings.firstTokenMs + state.settings.tokenMs * plan.tokens.length);
    state.counts.tokens += plan.tokens.length;
    return { status: 200, body: wholeAnswer(plan, asked) };
  });
}

async function completions(state: FakeState, body: unknown, response: ServerResponse): Promise<FakeAnswer | undefined> {
  const given = read(completionRequest, body);
  if (!given.ok) return given.answer;
  const request = given.value;
  const model = request.model ?? state.baseModel;
  return work(state, model, response, async (digest) => {
    const prompts = promptsOf(request);
    const longest = Math.max(...prompts.map(({ ids }) => ids.length));
    if (longest >= state.settings.maxContext) return overflow(state, longest);
    await pause(state.settings.firstTokenMs);
    return { status: 200, body: wholeCompletion(request, prompts, model, digest, state.settings) };
  });
}

/** Finds the weights, takes a place, counts, and notices a caller that leaves. */
async function work(
  state: FakeState,
  model: string,
  response: ServerResponse,
  act: (digest: string) => Promise<FakeAnswer | undefined>,
): Promise<FakeAnswer | undefined> {
  const { counts, settings, adapters, places } = state;
  counts.requests += 1;
  counts.byModel[model] = (counts.byModel[model] ?? 0) + 1;
  response.once('close', () => {
    if (!response.writableFinished) counts.cancelled += 1;
  });
  if (settings.faults.hang === true) return undefined;
  const { failStatus } = settings.faults;
  if (failStatus !== undefined) return refusal(failStatus, 'The engine failed.', 'InternalServerError');
  const digest = adapters.digestOf(model);
  if (digest === undefined) return unknownModel(state, model);
  const giveBack = settings.faults.busy === true ? undefined : await places.take(settings.places, settings.queueMax);
  if (giveBack === undefined) return refusal(503, 'The engine is currently busy.', 'Service Unavailable');
  counts.running += 1;
  try {
    return response.destroyed ? undefined : await act(digest);
  } finally {
    counts.running -= 1;
    giveBack();
  }
}

async function load(state: FakeState, body: unknown): Promise<FakeAnswer> {
  const given = read(loadRequest, body);
  if (!given.ok) return given.answer;
  const { lora_name: name, lora_path: path } = given.value;
  const { loadStatus, lacks } = state.settings.faults;
  if (lacks === 'adapters') return { status: 404, body: { detail: 'Not Found' } };
  if (loadStatus !== undefined) state.counts.loadsRefused += 1;
  if (loadStatus !== undefined) return refusal(loadStatus, 'The adapter is refused.', 'InternalServerError');
  const answer = await state.adapters.load(name, path, state.settings);
  if (answer.status === 200) state.counts.loads.push(name);
  return answer;
}

function unload(state: FakeState, body: unknown): FakeAnswer {
  const given = read(unloadRequest, body);
  if (!given.ok) return given.answer;
  const { unloadStatus } = state.settings.faults;
  if (unloadStatus !== undefined) state.counts.unloadsRefused += 1;
  if (unloadStatus !== undefined) return refusal(unloadStatus, 'The engine failed.', 'InternalServerError');
  const answer = state.adapters.unload(given.value.lora_name);
  if (answer.status === 200) state.counts.unloads.push(given.value.lora_name);
  return answer;
}

function rendered({ settings }: FakeState, messages: readonly FakeMessage[], open: boolean): number[] {
  const isOther = settings.faults.lie === 'other_template';
  return templateIds(isOther ? [{ role: 'system', content: '' }, ...messages] : messages, open);
}

function tokenize(state: FakeState, body: unknown): FakeAnswer {
  state.settings.tokenizeHeard?.(body);
  const failed = state.settings.tokenizeFails?.(body);
  if (failed !== undefined) return refusal(failed, 'The engine failed.', 'InternalServerError');
  const given = read(tokenizeRequest, body);
  if (!given.ok) return given.answer;
  const { messages, prompt, add_generation_prompt: open } = given.value;
  const tokens =
    messages === undefined
      ? tokensOf(prompt ?? '').map(({ id }) => id)
      : rendered(state, messagesOf({ messages }), open ?? true);
  return { status: 200, body: { count: tokens.length, max_model_len: 0, tokens } };
}

function modelList({ baseModel, adapters, settings }: FakeState) {
  const base = { id: baseModel, object: 'model', root: baseModel, parent: null, max_model_len: settings.maxContext };
  const others = adapters.names.map((id) => {
    return { id, object: 'model', root: adapters.pathOf(id), parent: baseModel, max_model_len: null };
  });
  return { object: 'list', data: [base, ...others] };
}

function metrics({ counts }: FakeState, response: ServerResponse): undefined {
  response.writeHead(200, { 'content-type': 'text/plain' });
  response.end(`vllm:num_requests_running ${counts.running}\nvllm:num_requests_waiting 0\n`);
}

function unknownModel({ baseModel, adapters }: FakeState, model: string): FakeAnswer {
  const known = [baseModel, ...adapters.names].join(', ');
  const message = `The model \`${model}\` does not exist. Valid aliases: ${known}.`;
  return refusal(404, message, 'NotFoundError', 'model');
}

function overflow({ settings }: FakeState, tokens: number): FakeAnswer {
  const message = `This model's maximum context length is ${settings.maxContext} tokens. However, your prompt contains at least ${tokens} input tokens. (parameter=input_tokens, value=${tokens})`;
  return refusal(400, message, 'BadRequestError', 'input_tokens');
}

/** vLLM 0.32's words. */
function unbounded({ settings }: FakeState, most: number): FakeAnswer {
  const message = `max_tokens=${most} cannot be greater than max_model_len=${settings.maxContext}. Please request fewer output tokens. (parameter=max_tokens, value=${most})`;
  return refusal(400, message, 'BadRequestError', 'max_tokens');
}

function read<T>(schema: z.ZodType<T>, body: unknown): Given<T> {
  const parsed = schema.safeParse(body);
  if (parsed.success) return { ok: true, value: parsed.data };
  const issue = parsed.error.issues[0];
  const param = `body.${issue?.path.join('.') ?? ''}`;
  const message = `1 validation error:\n  {'type': 'invalid', 'loc': '${param}', 'msg': '${issue?.code ?? ''}'}`;
  return { ok: false, answer: refusal(400, message, 'Bad Request', param) };
}
