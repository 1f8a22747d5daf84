// Speaks to a plain OpenAI-compatible endpoint: no token ids, no adapters. Its turns serve, and are never trained on.
// Richer dialects extend it.
import { isJsonObject, type BacktalkError } from '@backtalk/kit';
import { z } from 'zod';
import type {
  CallOptions,
  Capabilities,
  CompletionChoice,
  CompletionRequest,
  EngineAnswer,
  EngineChatRequest,
  EngineClient,
  EngineFrame,
  EngineHealth,
  EngineModel,
  RawObject,
  ScoreItem,
  StreamOptions,
  TokenizeRequest,
} from '../engine-client.js';
import { engineErrors } from '../errors.js';
import { type EngineAddress, EngineConnections, type Reply } from '../transport/engine-connections.js';
import { captureOf, parseChat, parseJson } from './chat-wire.js';
import { completionBody, completionChoices } from './completions.js';
import { FrameStream } from './frame-stream.js';
import { type CallContext, refusalInStream, refusalOf } from './refusals.js';

const modelList = z.object({
  data: z.array(
    z.object({
      id: z.string(),
      parent: z.string().nullish(),
      root: z.string().nullish(),
      max_model_len: z.number().nullish(),
    }),
  ),
});

export class OpenAiClient implements EngineClient {
  protected readonly dialect: string = 'openai';
  protected readonly healthPath: string = '/v1/models';
  protected readonly connections: EngineConnections;

  constructor(address: EngineAddress) {
    this.connections = new EngineConnections(address);
  }

  async chat(request: EngineChatRequest, options: CallOptions): Promise<EngineAnswer> {
    const body = this.chatBody(request, false);
    const path = '/v1/chat/completions';
    const raw = parseChat((await this.post(path, body, request.model, options)).text);
    // Some hosts refuse with status 200, as in a stream.
    if (isJsonObject(raw.error)) throw refusalInStream(raw.error, this.context(path, request.model));
    return { raw, capture: captureOf(raw) };
  }

  chatStream(request: EngineChatRequest, options: StreamOptions): AsyncIterable<EngineFrame> {
    const path = '/v1/chat/completions';
    const stream = new FrameStream(this.context(path, request.model), options);
    stream.call = this.connections.dispatch('POST', path, this.chatBody(request, true), options, stream);
    return stream;
  }

  async completions(request: CompletionRequest, options: CallOptions): Promise<CompletionChoice[]> {
    const reply = await this.post('/v1/completions', this.completionBody(request), request.model, options);
    return completionChoices(reply.text);
  }

  score(_items: readonly ScoreItem[], _options: CallOptions & { readonly model: string }): Promise<number[][]> {
    return Promise.reject(this.unsupported('scoring of given ids'));
  }

  tokenize(_request: TokenizeRequest, _options: CallOptions): Promise<number[]> {
    return Promise.reject(this.unsupported('tokenization'));
  }

  async models(options: CallOptions): Promise<EngineModel[]> {
    const path = '/v1/models';
    const reply = await this.connections.request('GET', path, undefined, options);
    const parsed = modelList.safeParse(parseJson(this.succeeded(reply, this.context(path, '')).text));
    if (!parsed.success) throw engineErrors.replyInvalid({ what: 'list of models' });
    return parsed.data.data.map((model) => ({
      id: model.id,
      parent: model.parent ?? undefined,
      root: model.root ?? undefined,
      maxContext: model.max_model_len ?? undefined,
    }));
  }

  async health(options: CallOptions): Promise<EngineHealth> {
    try {
      const { status } = await this.connections.request('GET', this.healthPath, undefined, options);
      if (status === 401 || status === 403) return 'refusing';
      return status === 200 || status === 429 ? 'up' : 'dead';
    } catch {
      // Whatever kept the call from an answer, the engine is not there for other callers either.
      return 'unreachable';
    }
  }

  loadAdapter(_name: string, _path: string, _options: CallOptions): Promise<void> {
    return Promise.reject(this.unsupported('loading of adapters'));
  }

  unloadAdapter(_name: string, _options: CallOptions): Promise<void> {
    return Promise.reject(this.unsupported('unloading of adapters'));
  }

  async probe(options: CallOptions): Promise<Capabilities> {
    const [first] = await this.models(options);
    if (first === undefined) throw engineErrors.replyInvalid({ what: 'empty list of models' });
    return { baseModel: first.id, maxContext: first.maxContext ?? 0, names: [] };
  }

  close(): Promise<void> {
    return this.connections.close();
  }

  leave(): Promise<void> {
    return this.connections.leave();
  }

  /** What is sent for a chat request. */
  protected chatBody(request: EngineChatRequest, stream: boolean): RawObject {
    const body: RawObject = { ...request, stream };
    const streamOptions = request['stream_options'];
    if (stream) body['stream_options'] = { ...(isJsonObject(streamOptions) ? streamOptions : {}), include_usage: true };
    else delete body['stream_options'];
    return body;
  }

  protected completionBody(request: CompletionRequest): RawObject {
    return completionBody(request);
  }

  protected async post(path: string, body: RawObject, model: string, options: CallOptions): Promise<Reply> {
    return this.succeeded(await this.connections.request('POST', path, body, options), this.context(path, model));
  }

  protected context(path: string, model: string): CallContext {
    return { dialect: this.dialect, path, model };
  }

  /** What a refusal to unload comes to: its status does not say whether the adapter is gone, and the list of models does. */
  protected async notUnloaded(name: string, engineStatus: number, options: CallOptions): Promise<BacktalkError> {
    const isHeld = (await this.models(options)).some(({ id }) => id === name);
    return isHeld ? engineErrors.failed({ engineStatus }) : engineErrors.adapterNotLoaded({ name });
  }

  private succeeded(reply: Reply, context: CallContext): Reply {
    if (reply.status !== 200) throw refusalOf(reply, context);
    return reply;
  }

  private unsupported(what: string) {
    return engineErrors.unsupported({ what, dialect: this.dialect });
  }
}
