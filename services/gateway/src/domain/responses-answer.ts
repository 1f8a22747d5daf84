// How does an answer read to a client of OpenAI's Responses API?
//
// In: an answer of the chat API, in one piece or in the pieces of its stream. Out: a response with its items (a thought, a
// message, calls), or the events that build it. Log-probabilities of a stream go out with the words that they are of, and
// are not said again at its end. Pure.
import type { Capture, EngineFrame, RawObject, TokenUsage, ToolCallDelta } from '@backtalk/dialects';
import { isJsonObject, type JsonObject } from '@backtalk/kit/pure';
import { idOfItem } from './left-to-log.js';
import type { RepeatedSettings } from './responses-request.js';

export interface ResponseView {
  readonly turn: string;
  /** The name that the client asked for. */
  readonly model: string;
  readonly wantsLogprobs: boolean;
  readonly repeated: RepeatedSettings;
}

type Status = 'in_progress' | 'completed' | 'incomplete' | 'failed';

interface Failure {
  readonly code: string;
  readonly message: string;
}

interface Answered {
  readonly createdAt: number;
  readonly status: Status;
  readonly output: readonly JsonObject[];
  readonly finishReason?: string | undefined;
  readonly usage?: TokenUsage | undefined;
  readonly failure?: Failure | undefined;
}

/** Of one that an engine ended itself, as where it stops. */
const cutOff: Failure = { code: 'server_error', message: 'The model server ended the answer before it was complete.' };

function responseOf({ turn, model, repeated }: ResponseView, answered: Answered): JsonObject {
  const { createdAt, status, output, finishReason, usage, failure = cutOff } = answered;
  const reason = finishReason === 'length' ? 'max_output_tokens' : 'content_filter';
  return {
    id: turn,
    object: 'response',
    created_at: createdAt,
    status,
    error: status === 'failed' ? failure : null,
    incomplete_details: status === 'incomplete' ? { reason } : null,
    instructions: null,
    model,
    output,
    store: false,
    text: { format: { type: 'text' } },
    tool_choice: 'auto',
    tools: [],
    truncation: 'disabled',
    usage: usage === undefined ? null : usageOf(usage),
    ...repeated,
  };
}

function usageOf({ promptTokens, cachedTokens = 0, completionTokens }: TokenUsage): JsonObject {
  return {
    input_tokens: promptTokens,
    input_tokens_details: { cached_tokens: cachedTokens },
    output_tokens: completionTokens,
    // Engines count thoughts among all others.
    output_tokens_details: { reasoning_tokens: 0 },
    total_tokens: promptTokens + completionTokens,
  };
}

const complete: ReadonlySet<string> = new Set(['stop', 'tool_calls', 'function_call']);
const cutShort: ReadonlySet<string> = new Set(['length', 'content_filter']);

function statusAfter(finishReason: string): Status {
  if (complete.has(finishReason)) return 'completed';
  return cutShort.has(finishReason) ? 'incomplete' : 'failed';
}

/** Items have no status of a response that failed. */
function itemStatus(status: Status): Status {
  return status === 'failed' ? 'incomplete' : status;
}

function thoughtItem(id: string, text: string): JsonObject {
  return { id, type: 'reasoning', summary: [], content: [{ type: 'reasoning_text', text }] };
}

function textPart(text: string, logprobs: readonly unknown[] = []): JsonObject {
  return { type: 'output_text', text, annotations: [], logprobs };
}

function messageItem(id: string, status: Status, content: readonly JsonObject[]): JsonObject {
  return { id, type: 'message', role: 'assistant', status, content };
}

interface CallWords {
  readonly callId: string;
  readonly name: string;
  readonly text: string;
}

function callItem(id: string, status: Status, { callId, name, text }: CallWords): JsonObject {
  return { id, type: 'function_call', status, call_id: callId === '' ? id : callId, name, arguments: text };
}

function logprobsIn(raw: RawObject): readonly unknown[] {
  const choices = raw['choices'];
  const choice: unknown = Array.isArray(choices) ? choices[0] : undefined;
  const logprobs = isJsonObject(choice) ? choice['logprobs'] : undefined;
  const content = isJsonObject(logprobs) ? logprobs['content'] : undefined;
  return Array.isArray(content) ? content : [];
}

function createdIn(raw: RawObject): number {
  return typeof raw['created'] === 'number' ? raw['created'] : 0;
}

/** @param raw a whole answer of the chat API */
export function wholeResponse(
  raw: RawObject,
  { text, reasoning, toolCalls, finishReason, usage }: Capture,
  view: ResponseView,
): JsonObject {
  const status = statusAfter(finishReason);
  const output: JsonObject[] = [];
  if (reasoning !== '') output.push(thoughtItem(idOfItem('rs', view.turn, output.length), reasoning));
  if (text !== '' || toolCalls.length === 0) {
    const part = textPart(text, view.wantsLogprobs ? logprobsIn(raw) : []);
    output.push(messageItem(idOfItem('msg', view.turn, output.length), itemStatus(status), [part]));
  }
  for (const { id: callId, function: called } of toolCalls) {
    const said = { callId, name: called.name, text: called.arguments };
    output.push(callItem(idOfItem('fc', view.turn, output.length), itemStatus(status), said));
  }
  return responseOf(view, { createdAt: createdIn(raw), status, output, finishReason, usage });
}

interface OpenWords {
  readonly kind: 'thought' | 'text';
  readonly id: string;
  readonly place: number;
  text: string;
}

interface OpenCall extends CallWords {
  readonly id: string;
  readonly place: number;
  text: string;
}

/** The events of one response, in order. Calls are open until the end, since their pieces may come in turns. */
export class ResponseEvents {
  private readonly output: JsonObject[] = [];
  private places = 0;
  private words: OpenWords | undefined;
  private readonly calls = new Map<number, OpenCall>();
  private sequence = 0;
  private createdAt = 0;
  private finishReason = '';
  private usage: TokenUsage | undefined;

  constructor(private readonly view: ResponseView) {}

  /** What a frame adds. */
  frame({ raw, reasoning = '', content = '', toolCallDeltas = [], finishReason, usage }: EngineFrame): string {
    const begun = this.sequence === 0 ? this.begin(raw) : '';
    this.finishReason = finishReason ?? this.finishReason;
    this.usage = usage ?? this.usage;
    const thought = reasoning === '' ? '' : this.addWords('thought', reasoning, raw);
    // Space around calls is no message.
    const isSpace = this.calls.size > 0 && content.trim() === '';
    const said = content === '' || isSpace ? '' : this.addWords('text', content, raw);
    return begun + thought + said + toolCallDeltas.map((delta) => this.addCall(delta)).join('');
  }

  /** The end of what is open, and of the response. */
  end(): string {
    const status = statusAfter(this.finishReason);
    // An answer that says nothing is a message all the same.
    const empty = this.places === 0 ? this.beginWords('text') : '';
    const closed = this.closeWords(status) + this.closeCalls(status);
    return `${empty}${closed}${this.event(`response.${status}`, { response: this.response(status) })}`;
  }

  /** The end of one that broke off: what is open stays so. */
  broken(error: Failure & { readonly type: string; readonly param: string | null }): string {
    const { code, message, param } = error;
    const failure = { code: 'server_error', message };
    return (
      this.event('response.failed', { response: this.response('failed', failure) }) +
      this.event('error', { code, message, param, error })
    );
  }

  private response(status: Status, failure?: Failure): JsonObject {
    const { createdAt, finishReason, usage } = this;
    // In order of their places, of those that are closed.
    const output = this.output.filter((item) => item !== undefined);
    return responseOf(this.view, { createdAt, status, output, finishReason, usage, failure });
  }

  private begin(raw: RawObject): string {
    this.createdAt = createdIn(raw);
    const response = this.response('in_progress');
    return this.event('response.created', { response }) + this.event('response.in_progress', { response });
  }

  private addWords(kind: 'thought' | 'text', delta: string, raw: RawObject): string {
    const changed = this.words?.kind === kind ? '' : this.closeWords('completed') + this.beginWords(kind);
    const { words, view } = this;
    if (words === undefined) return changed;
    words.text += delta;
    const at = { item_id: words.id, output_index: words.place, content_index: 0, delta };
    if (kind === 'thought') return changed + this.event('response.reasoning_text.delta', at);
    const logprobs = view.wantsLogprobs ? logprobsIn(raw) : [];
    return changed + this.event('response.output_text.delta', { ...at, logprobs });
  }

  private beginWords(kind: 'thought' | 'text'): string {
    const place = this.places++;
    const id = idOfItem(kind === 'text' ? 'msg' : 'rs', this.view.turn, place);
    this.words = { kind, id, place, text: '' };
    const item = kind === 'text' ? messageItem(id, 'in_progress', []) : { ...thoughtItem(id, ''), content: [] };
    const part = kind === 'text' ? textPart('') : { type: 'reasoning_text', text: '' };
    const at = { item_id: id, output_index: place, content_index: 0 };
    return (
      this.event('response.output_item.added', { output_index: place, item }) +
      this.event('response.content_part.added', { ...at, part })
    );
  }

  private closeWords(status: Status): string {
    if (this.words === undefined) return '';
    const { kind, id, place, text } = this.words;
    this.words = undefined;
    const isText = kind === 'text';
    const part = isText ? textPart(text) : { type: 'reasoning_text', text };
    const item = isText ? messageItem(id, itemStatus(status), [part]) : thoughtItem(id, text);
    this.output[place] = item;
    const at = { item_id: id, output_index: place, content_index: 0 };
    return (
      (isText
        ? this.event('response.output_text.done', { ...at, text, logprobs: [] })
        : this.event('response.reasoning_text.done', { ...at, text })) +
      this.event('response.content_part.done', { ...at, part }) +
      this.event('response.output_item.done', { output_index: place, item })
    );
  }

  private addCall({ index, id: callId = '', name = '', arguments: delta = '' }: ToolCallDelta): string {
    let call = this.calls.get(index);
    let changed = '';
    if (call === undefined) {
      changed = this.closeWords('completed');
      const place = this.places++;
      call = { id: idOfItem('fc', this.view.turn, place), place, callId, name, text: '' };
      this.calls.set(index, call);
      const item = callItem(call.id, 'in_progress', call);
      changed += this.event('response.output_item.added', { output_index: place, item });
    }
    if (delta === '') return changed;
    call.text += delta;
    const at = { item_id: call.id, output_index: call.place, delta };
    return changed + this.event('response.function_call_arguments.delta', at);
  }

  private closeCalls(status: Status): string {
    return [...this.calls.values()]
      .map((call) => {
        const { id, place, name, text } = call;
        const item = callItem(id, itemStatus(status), call);
        this.output[place] = item;
        return (
          this.event('response.function_call_arguments.done', {
            item_id: id,
            output_index: place,
            name,
            arguments: text,
          }) + this.event('response.output_item.done', { output_index: place, item })
        );
      })
      .join('');
  }

  private event(type: string, fields: JsonObject): string {
    const event = JSON.stringify({ type, sequence_number: this.sequence, ...fields });
    this.sequence += 1;
    return `event: ${type}\ndata: ${event}\n\n`;
  }
}
