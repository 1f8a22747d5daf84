// Speaks to vLLM, and to the built-in engine, which has the same dialect.
//
// Every chat answer comes with its exact ids and logprobs. Adapters are chosen by the `model` of a request; names are
// never loaded twice, because the prefix cache is keyed by name.
import { z } from 'zod';
import type {
  CallOptions,
  Capabilities,
  CompletionRequest,
  EngineChatRequest,
  RawObject,
  ScoreItem,
  TokenizeRequest,
} from '../engine-client.js';
import { engineErrors } from '../errors.js';
import { parseJson } from '../openai/chat-wire.js';
import { OpenAiClient } from '../openai/open-ai-client.js';
import { errorIn } from '../openai/refusals.js';
import { probeCapabilities } from './capability-probe.js';

const tokens = z.object({ tokens: z.array(z.number()) });
/** Few enough that a small engine's memory holds the logits of all of them. */
const scoreItemsMax = 4;
const isFull = /unload one first|no free slot/i;
const speaksOfAdapter = /max_lora_rank|target[ _]modules|not supported/i;

export class VllmClient extends OpenAiClient {
  protected override readonly dialect = 'vllm';
  protected override readonly healthPath = '/health';

  override async score(
    items: readonly ScoreItem[],
    { model, ...options }: CallOptions & { readonly model: string },
  ): Promise<number[][]> {
    const scores: number[][] = [];
    for (let from = 0; from < items.length; from += scoreItemsMax) {
      const some = items.slice(from, from + scoreItemsMax);
      const prompt = some.map(({ promptIds, answerIds }) => [...promptIds, ...answerIds]);
      const promptLogprobsStart = Math.min(...some.map(({ promptIds }) => promptIds.length));
      const request = { model, prompt, maxTokens: 1, promptLogprobs: true, promptLogprobsStart };
      const choices = await this.completions(request, options);
      for (const [at, { promptIds, answerIds }] of some.entries()) {
        const logprobs = choices[at]?.promptLogprobs?.slice(promptIds.length) ?? [];
        const known = logprobs.filter((logprob) => logprob !== undefined);
        if (known.length !== answerIds.length) throw engineErrors.replyInvalid({ what: 'prompt logprobs' });
        scores.push(known);
      }
    }
    return scores;
  }

  override async tokenize(request: TokenizeRequest, options: CallOptions): Promise<number[]> {
    const { model, text, messages, tools, addGenerationPrompt = true, templateArguments } = request;
    const body: RawObject =
      messages === undefined
        ? { model, prompt: text ?? '', add_special_tokens: false }
        : {
            model,
            messages,
            tools,
            add_generation_prompt: addGenerationPrompt,
            chat_template_kwargs: templateArguments,
          };
    const parsed = tokens.safeParse(parseJson((await this.post('/tokenize', body, model, options)).text));
    if (!parsed.success) throw engineErrors.replyInvalid({ what: 'tokens' });
    return parsed.data.tokens;
  }

  override async loadAdapter(name: string, path: string, options: CallOptions): Promise<void> {
    const body = { lora_name: name, lora_path: path };
    const { status, text } = await this.connections.request('POST', '/v1/load_lora_adapter', body, options);
    if (status === 200) return;
    const error = errorIn(text);
    if (status === 401) throw engineErrors.unauthorized({});
    if (status === 404 || status === 405) {
      // Without VLLM_ALLOW_RUNTIME_LORA_UPDATING the path itself is unknown, and the body has no `error`.
      if (error === undefined) throw engineErrors.unsupported({ what: 'loading of adapters', dialect: 'vllm' });
      throw engineErrors.adapterPathMissing({ name });
    }
    const said = error?.message ?? '';
    if (/already been loaded/.test(said)) throw engineErrors.adapterAlreadyLoaded({ name });
    // An engine that is ill or full answers 500 to good adapters, too: only where its words are about the adapter is it refused.
    const isAboutAdapter = status < 500 && status !== 429 ? !isFull.test(said) : speaksOfAdapter.test(said);
    throw isAboutAdapter
      ? engineErrors.adapterRefused({ name, engineStatus: status })
      : engineErrors.failed({ engineStatus: status });
  }

  override async unloadAdapter(name: string, options: CallOptions): Promise<void> {
    const body = { lora_name: name };
    const { status, text } = await this.connections.request('POST', '/v1/unload_lora_adapter', body, options);
    if (status === 200) return;
    if (status === 401) throw engineErrors.unauthorized({});
    if (status !== 404 && status !== 400) throw await this.notUnloaded(name, status, options);
    throw errorIn(text) === undefined
      ? engineErrors.unsupported({ what: 'unloading of adapters', dialect: 'vllm' })
      : engineErrors.adapterNotLoaded({ name });
  }

  override probe(options: CallOptions): Promise<Capabilities> {
    return probeCapabilities(this, options);
  }

  /** An explicit null for `top_logprobs` is left out: some releases then return no logprobs at all. */
  protected override chatBody(request: EngineChatRequest, stream: boolean): RawObject {
    const body = super.chatBody(request, stream);
    body['return_token_ids'] = true;
    body['logprobs'] = true;
    body['cache_salt'] ??= request.model;
    if (body['top_logprobs'] === null || request['logprobs'] !== true) delete body['top_logprobs'];
    return body;
  }

  protected override completionBody(request: CompletionRequest): RawObject {
    const body = super.completionBody(request);
    body['return_token_ids'] = true;
    if (request.promptLogprobs === true) body['prompt_logprobs'] = 0;
    if (request.promptLogprobsStart !== undefined) body['prompt_logprobs_start'] = request.promptLogprobsStart;
    return body;
  }
}
