// Speaks to SGLang, by the shapes of its source (0.5.15).
//
// Its streamed chat carries no token ids, so that a stream is a whole answer in synthetic frames: nothing is seen before
// the end. An adapter is asked for as `<base>:<adapter>`; callers name it alone, as they do elsewhere.
import { z } from 'zod';
import type {
  CallOptions,
  Capabilities,
  CompletionChoice,
  CompletionRequest,
  EngineAnswer,
  EngineChatRequest,
  EngineFrame,
  RawObject,
  ScoreItem,
  StreamOptions,
  TokenizeRequest,
} from '../engine-client.js';
import { engineErrors } from '../errors.js';
import { parseChat, parseJson } from '../openai/chat-wire.js';
import { OpenAiClient } from '../openai/open-ai-client.js';
import { errorIn } from '../openai/refusals.js';
import type { Reply } from '../transport/engine-connections.js';
import { probeCapabilities } from '../vllm/capability-probe.js';
import { answerAsFrames } from './answer-as-frames.js';
import { asOthersSay, generatedChoice, saysFailure, scoresOf, sglangCaptureOf } from './sglang-wire.js';

const tokens = z.object({ tokens: z.array(z.number()) });
/** Of the machine, and of another adapter that had to make room. */
const saysNothingOfAdapter = /out of memory|cuda|nccl|timed out|(?:evict|unloading) LRU/i;

export class SglangClient extends OpenAiClient {
  protected override readonly dialect = 'sglang';
  protected override readonly healthPath = '/health';
  /** The served base model's name; asked for once. */
  private base: string | undefined;

  override async chat(request: EngineChatRequest, options: CallOptions): Promise<EngineAnswer> {
    const body = { ...this.chatBody(request, false), model: await this.servedName(request.model, options) };
    const raw = parseChat((await this.post('/v1/chat/completions', body, request.model, options)).text);
    const capture = sglangCaptureOf(raw, this.base);
    return { raw: asOthersSay(raw, capture), capture };
  }

  override async *chatStream(request: EngineChatRequest, options: StreamOptions): AsyncGenerator<EngineFrame> {
    // The first byte is the whole answer: only the deadline bounds it.
    const { signal, deadlineMs, room } = options;
    const { raw, capture } = await this.chat(request, { signal, deadlineMs, room });
    yield* answerAsFrames(raw, capture);
  }

  override async completions(request: CompletionRequest, options: CallOptions): Promise<CompletionChoice[]> {
    // Its own path, since `/v1/completions` gives no ids.
    const { model, temperature = 1, topP, topLogprobs, stop } = request;
    const adapter = await this.adapterOf(model, options);
    const sampling = { max_new_tokens: request.maxTokens, temperature, top_p: topP, stop, sampling_seed: request.seed };
    const choices: CompletionChoice[] = [];
    for (const prompt of promptsOf(request.prompt)) {
      const body = {
        ...adapter,
        ...(typeof prompt === 'string' ? { text: prompt } : { input_ids: prompt }),
        sampling_params: sampling,
        return_logprob: true,
        top_logprobs_num: topLogprobs ?? 0,
        return_text_in_logprobs: true,
      };
      choices.push(generatedChoice(parseJson((await this.post('/generate', body, model, options)).text)));
    }
    return choices;
  }

  override async score(
    items: readonly ScoreItem[],
    { model, ...options }: CallOptions & { readonly model: string },
  ): Promise<number[][]> {
    const adapter = await this.adapterOf(model, options);
    const scores: number[][] = [];
    for (const { promptIds, answerIds } of items) {
      const body = {
        ...adapter,
        input_ids: [...promptIds, ...answerIds],
        sampling_params: { max_new_tokens: 1, temperature: 1 },
        return_logprob: true,
        logprob_start_len: Math.max(0, promptIds.length - 1),
      };
      scores.push(scoresOf(parseJson((await this.post('/generate', body, model, options)).text), answerIds));
    }
    return scores;
  }

  override async tokenize(request: TokenizeRequest, options: CallOptions): Promise<number[]> {
    const { model, text = '', messages, tools, templateArguments } = request;
    const asked =
      messages === undefined
        ? { prompt: text, add_special_tokens: false }
        : { messages, tools, chat_template_kwargs: templateArguments };
    const body = { ...asked, model: await this.servedName(model, options) };
    const parsed = tokens.safeParse(parseJson((await this.post('/tokenize', body, model, options)).text));
    if (!parsed.success) throw engineErrors.replyInvalid({ what: 'tokens' });
    return parsed.data.tokens;
  }

  override async loadAdapter(name: string, path: string, options: CallOptions): Promise<void> {
    const body = { lora_name: name, lora_path: path };
    const reply = await this.connections.request('POST', '/load_lora_adapter', body, options);
    if (succeeded(reply)) return;
    this.checkAdministration(reply, 'loading of adapters');
    if (/already/i.test(reply.text)) throw engineErrors.adapterAlreadyLoaded({ name });
    // What is no folder that it sees, it takes for the name of a repository.
    if (/not exist|no such file|not found|repo id must/i.test(reply.text))
      throw engineErrors.adapterPathMissing({ name });
    // Whatever goes wrong while it loads has one status: some words do not speak of the adapter.
    const isIll = reply.status >= 500 || reply.status === 429 || saysNothingOfAdapter.test(reply.text);
    throw isIll
      ? engineErrors.failed({ engineStatus: reply.status })
      : engineErrors.adapterRefused({ name, engineStatus: reply.status });
  }

  override async unloadAdapter(name: string, options: CallOptions): Promise<void> {
    const reply = await this.connections.request('POST', '/unload_lora_adapter', { lora_name: name }, options);
    if (succeeded(reply)) return;
    if (reply.status < 500) this.checkAdministration(reply, 'unloading of adapters');
    throw await this.notUnloaded(name, reply.status, options);
  }

  override probe(options: CallOptions): Promise<Capabilities> {
    return probeCapabilities(this, options);
  }

  protected override chatBody(request: EngineChatRequest, stream: boolean): RawObject {
    const body = super.chatBody(request, stream);
    Object.assign(body, { logprobs: true, return_meta_info: true, return_prompt_token_ids: true });
    // Else it takes the model's own default, and logprobs are those of what the penalty has changed.
    body['repetition_penalty'] ??= 1;
    if (body['top_logprobs'] === null || request['logprobs'] !== true) delete body['top_logprobs'];
    return body;
  }

  private async adapterOf(model: string, options: CallOptions): Promise<RawObject> {
    return (await this.servedName(model, options)) === model ? {} : { lora_path: model };
  }

  private async servedName(model: string, options: CallOptions): Promise<string> {
    this.base ??= (await this.models(options)).find(({ parent }) => parent === undefined)?.id;
    // A bare name that it does not know is answered by the base.
    if (this.base === undefined) throw engineErrors.replyInvalid({ what: 'no base model in the list of models' });
    return model === this.base ? model : `${this.base}:${model}`;
  }

  /** What is wrong with the call itself, and not with the adapter. */
  private checkAdministration({ status, text }: Reply, what: string): void {
    if (status === 401 || status === 403) throw engineErrors.unauthorized({});
    if (/LoRA is not enabled/i.test(text)) throw engineErrors.unsupported({ what, dialect: this.dialect });
    if ((status === 404 || status === 405) && errorIn(text) === undefined)
      throw engineErrors.unsupported({ what, dialect: this.dialect });
    if (status >= 500) throw engineErrors.failed({ engineStatus: status });
  }
}

function promptsOf(prompt: CompletionRequest['prompt']): readonly (string | readonly number[])[] {
  if (typeof prompt === 'string') return [prompt];
  const isOne = (given: typeof prompt): given is readonly number[] => typeof given[0] === 'number';
  return isOne(prompt) ? [prompt] : prompt;
}

function succeeded({ status, text }: Reply): boolean {
  return status === 200 && !saysFailure(parseJson(text));
}
