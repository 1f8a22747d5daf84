// Finds out what an engine can do by asking it for one of everything. Never decides by version numbers.
//
// A refusal (4xx, unknown path) means "cannot"; an engine that fails or is not there ends the probe with its error.
import { CaptureAccumulator } from '../capture/accumulator.js';
import type { CallOptions, Capabilities, CapabilityName, EngineChatRequest, EngineClient } from '../engine-client.js';
import { engineErrors, isEngineError } from '../errors.js';

const probeTokens = 2;
const comparedTokens = 8;
/** In bfloat16 logprobs and scores differ by 0.04 in the mean, and by 0.2 at most. */
const disagreementMax = 0.3;
const missingAdapter = 'backtalk-capability-probe';
const missingPath = '/nonexistent/backtalk-capability-probe';

export async function probeCapabilities(client: EngineClient, options: CallOptions): Promise<Capabilities> {
  const models = await client.models(options);
  const base = models.find(({ parent }) => parent === undefined);
  if (base === undefined) throw engineErrors.replyInvalid({ what: 'no base model in the list of models' });
  const names = new Set<CapabilityName>();
  const learn = async (ask: () => Promise<readonly CapabilityName[]>) => {
    try {
      for (const name of await ask()) names.add(name);
    } catch (error) {
      if (!isEngineError(error, 'engine_unsupported', 'invalid_request', 'engine_reply_invalid')) throw error;
    }
  };
  await learn(async () => {
    const { capture } = await client.chat(warmUpRequest(base.id), options);
    const known: CapabilityName[] = [];
    if (capture.promptIds !== undefined && capture.answerIds.length > 0) known.push('token_ids');
    if (capture.logprobs.length > 0) known.push('logprobs');
    return known;
  });
  await learn(async () => {
    const accumulator = new CaptureAccumulator();
    for await (const frame of client.chatStream(warmUpRequest(base.id), options)) accumulator.add(frame);
    const { promptIds, answerIds, logprobs } = accumulator.capture();
    return promptIds !== undefined && answerIds.length > 0 && logprobs.length > 0 ? ['streamed_token_ids'] : [];
  });
  await learn(() => scoreCapabilities(client, base.id, options));
  await learn(async () => {
    try {
      await client.loadAdapter(missingAdapter, missingPath, options);
    } catch (error) {
      // Files that are nowhere are refused as missing by an engine that takes adapters.
      if (!isEngineError(error, 'adapter_path_missing', 'adapter_refused')) throw error;
    }
    return ['adapters'];
  });
  await learn(async () => {
    const ids = await client.tokenize({ model: base.id, text: 'Hello' }, options);
    return ids.length > 0 ? ['tokenize'] : [];
  });
  return { baseModel: base.id, maxContext: base.maxContext ?? 0, names: [...names] };
}

/** A small request whose answer carries logprobs: the first of its kind makes an engine compile what it needs. */
export function warmUpRequest(model: string): EngineChatRequest {
  return { model, messages: [{ role: 'user', content: 'Hello' }], max_tokens: probeTokens, temperature: 1, top_p: 1 };
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
  const total = logprobs.reduce((sum, logprob, at) => sum + Math.abs(logprob - (scores[at] ?? Number.NaN)), 0);
  const agree = total / logprobs.length <= disagreementMax;
  return isWhole && agree ? ['prompt_logprobs', 'true_logprobs'] : ['prompt_logprobs'];
}
