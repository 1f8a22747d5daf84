// Finds out what an engine can do by asking it for one of everything. Never decides by version numbers.
//
// A refusal (4xx, unknown path) means "cannot"; an engine that fails or is not there ends the probe with its error.
import { CaptureAccumulator } from '../capture/accumulator.js';
import type { CallOptions, Capabilities, CapabilityName, EngineChatRequest, EngineClient } from '../engine-client.js';
import { engineErrors, isEngineError } from '../errors.js';

const probeTokens = 2;
const comparedTokens = 8;
const missingAdapter = 'backtalk-capability-probe';
const missingPath = '/nonexistent/backtalk-capability-probe';

export async function probeCapabilities(client: EngineClient, options: CallOptions): Promise<Capabilities> {
  const models = await client.models(options);
  const base = models.find(({ parent }) => parent === undefined);
  if (base === undefined) throw engineErrors.replyInvalid({ what: 'no base model in the list of models' });
  const names = new Set<CapabilityName>();
  const learn = async (ask: () => Promise<readonly CapabilityName[]>) => {
    for (const name of await refusalsAreNo(ask)) names.add(name);
  };
  await learn(() => chatCapabilities(client, base.id, options));
  await learn(() => streamCapabilities(client, base.id, options));
  await learn(() => scoreCapabilities(client, base.id, options));
  await learn(() => adapterCapabilities(client, options));
  await learn(() => tokenizeCapabilities(client, base.id, options));
  return { baseModel: base.id, maxContext: base.maxContext ?? 0, names: [...names] };
}

/** A small request whose answer carries logprobs: the first of its kind makes an engine compile what it needs. */
export function warmUpRequest(model: string): EngineChatRequest {
  return { model, messages: [{ role: 'user', content: 'Hello' }], max_tokens: probeTokens, temperature: 1, top_p: 1 };
}

async function chatCapabilities(client: EngineClient, model: string, options: CallOptions): Promise<CapabilityName[]> {
  const { capture } = await client.chat(warmUpRequest(model), options);
  const names: CapabilityName[] = [];
  if (capture.promptIds !== undefined && capture.answerIds.length > 0) names.push('token_ids');
  if (capture.logprobs.length > 0) names.push('logprobs');
  return names;
}

async function streamCapabilities(
  client: EngineClient,
  model: string,
  options: CallOptions,
): Promise<CapabilityName[]> {
  const accumulator = new CaptureAccumulator();
  for await (const frame of client.chatStream(warmUpRequest(model), options)) accumulator.add(frame);
  const { promptIds, answerIds, logprobs } = accumulator.capture();
  return promptIds !== undefined && answerIds.length > 0 && logprobs.length > 0 ? ['streamed_token_ids'] : [];
}

/** Scores what it has just said: where the two disagree, the logprobs it gives are not those of its weights. */
async function scoreCapabilities(client: EngineClient, model: string, options: CallOptions): Promise<CapabilityName[]> {
  const request = { ...warmUpRequest(model), max_tokens: comparedTokens, top_k: -1 };
  const { capture } = await client.chat(request, options);
  const { promptIds = [], answerIds, logprobs } = capture;
  const isWhole = promptIds.length > 0 && answerIds.length > 0 && answerIds.length === logprobs.length;
  const item = isWhole
    ? { promptIds, answerIds }
    : { promptIds: promptIds.slice(0, 2), answerIds: promptIds.slice(2, 4) };
  if (item.answerIds.length === 0) return [];
  const [scores = []] = await client.score([item], { ...options, model });
  return isWhole && agree(logprobs, scores) ? ['prompt_logprobs', 'true_logprobs'] : ['prompt_logprobs'];
}

/** In bfloat16 the two differ by 0.04 in the mean, and by 0.2 at most. */
const disagreementMax = 0.3;

function agree(given: readonly number[], scored: readonly number[]): boolean {
  const total = given.reduce((sum, logprob, at) => sum + Math.abs(logprob - (scored[at] ?? Number.NaN)), 0);
  return total / given.length <= disagreementMax;
}

/** Files that are nowhere are refused as missing by an engine that takes adapters. */
async function adapterCapabilities(client: EngineClient, options: CallOptions): Promise<CapabilityName[]> {
  try {
    await client.loadAdapter(missingAdapter, missingPath, options);
  } catch (error) {
    if (!isEngineError(error, 'adapter_path_missing', 'adapter_refused')) throw error;
  }
  return ['adapters'];
}

async function tokenizeCapabilities(
  client: EngineClient,
  model: string,
  options: CallOptions,
): Promise<CapabilityName[]> {
  return (await client.tokenize({ model, text: 'Hello' }, options)).length > 0 ? ['tokenize'] : [];
}

async function refusalsAreNo(ask: () => Promise<readonly CapabilityName[]>): Promise<readonly CapabilityName[]> {
  try {
    return await ask();
  } catch (error) {
    if (!isEngineError(error, 'engine_unsupported', 'invalid_request', 'engine_reply_invalid')) throw error;
    return [];
  }
}
