// Speaks to SGLang, by its documented shapes.
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
import { saysFailure, scoresOf, sglangCaptureOf } from './sglang-wire.js';

const tokens = z.object({ tokens: z.array(z.number()) });

export class SglangClient extends OpenAiClient {
  protected override readonly dialect = 'sglang';
  protected override readonly healthPath = '/health';
  /** The served base model's name; asked for once. */
  private base: string | undefined;

  override async chat(request: EngineChatRequest, options: CallOptions): Promise<EngineAnswer> {
    const body = { ...this.chatBody(request, false), model: await this.servedName(request.model, options) };
    const raw = parseChat((await this.post('/v1/chat/completions', body, request.model, options)).text);
    return { raw, capture: sglangCaptureOf(raw, this.base) };
  }

  override async *chatStream(request: EngineChatRequest, options: StreamOptions): AsyncGenerator<EngineFrame> {
    // The first byte is the whole answer: only the deadline bounds it.
    const { signal, deadlineMs } = options;
    const { raw, capture } = await this.chat(request, { signal, deadlineMs });
    yield* answerAsFrames(raw, capture);
  }

  override async completions(request: CompletionRequest, options: CallOptions): Promise<CompletionChoice[]> {
    return super.completions({ ...request, model: await this.servedName(request.model, options) }, options);
  }

  override async score(
    items: readonly ScoreItem[],
    { model, ...options }: CallOptions & { readonly model: string },
  ): Promise<number[][]> {
    const adapter = (await this.servedName(model, options)) === model ? {} : { lora_path: model };
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
    if (messages !== undefined) {
      // One token more than is needed, because the conversation's ids come only with an answer.
      const asked = { model, messages, tools, chat_template_kwargs: templateArguments, max_tokens: 1 };
      const { capture } = await this.chat(asked, options);
      if (capture.promptIds === undefined) throw engineErrors.replyInvalid({ what: 'prompt ids' });
      return [...capture.promptIds];
    }
    const body = { model: await this.servedName(model, options), prompt: text, add_special_tokens: false };
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
    if (/not exist|no such file|not found/i.test(reply.text)) throw engineErrors.adapterPathMissing({ name });
    const isIll = reply.status >= 500 || reply.status === 429;
    throw isIll
      ? engineErrors.failed({ engineStatus: reply.status })
      : engineErrors.adapterRefused({ name, engineStatus: reply.status });
  }

  override async unloadAdapter(name: string, options: CallOptions): Promise<void> {
    const reply = await this.connections.request('POST', '/unload_lora_adapter', { lora_name: name }, options);
    if (succeeded(reply)) return;
    this.checkAdministration(reply, 'unloading of adapters');
    throw engineErrors.adapterNotLoaded({ name });
  }

  override probe(options: CallOptions): Promise<Capabilities> {
    return probeCapabilities(this, options);
  }

  protected override chatBody(request: EngineChatRequest, stream: boolean): RawObject {
    const body = super.chatBody(request, stream);
    Object.assign(body, { logprobs: true, return_meta_info: true, return_prompt_token_ids: true });
    if (body['top_logprobs'] === null || request['logprobs'] !== true) delete body['top_logprobs'];
    return body;
  }

  private async servedName(model: string, options: CallOptions): Promise<string> {
    this.base ??= (await this.models(options)).find(({ parent }) => parent === undefined)?.id;
    return this.base === undefined || model === this.base ? model : `${this.base}:${model}`;
  }

  /** What is wrong with the call itself, and not with the adapter. */
  private checkAdministration({ status, text }: Reply, what: string): void {
    if (status === 401 || status === 403) throw engineErrors.unauthorized({});
    if ((status === 404 || status === 405) && errorIn(text) === undefined)
      throw engineErrors.unsupported({ what, dialect: this.dialect });
    if (status >= 500) throw engineErrors.failed({ engineStatus: status });
  }
}

function succeeded({ status, text }: Reply): boolean {
  return status === 200 && !saysFailure(parseJson(text));
}
