// How does an answer read to a client of OpenAI's Responses API?
//
// In: an answer of the chat API, in one piece or in the pieces of its stream. Out: a response with its items (a thought, a
// message, calls), or the events that build it. Pure.
import type { EngineFrame, RawObject, TokenUsage, ToolCallDelta } from '@backtalk/dialects';
import { isJsonObject, type JsonObject } from '@backtalk/kit/pure';
import type { RepeatedSettings } from './responses-request.js';

export interface ResponseView {
  readonly turn: string;
  /** The name that the client asked for. */
  readonly model: string;
  readonly wantsLogprobs: boolean;
  readonly repeated: RepeatedSettings;
}

type Status = 'in_progress' | 'completed' | 'incomplete';

interface Answered {
  readonly createdAt: number;
  readonly status: Status;
  readonly output: readonly JsonObject[];
  readonly finishReason?: string | undefined;
  readonly usage?: TokenUsage | undefined;
}

function responseOf({ turn, model, repeated }: ResponseView, answered: Answered): JsonObject {
  const { createdAt, status, output, finishReason, usage } = answered;
  const reason = finishReason === 'length' ? 'max_output_tokens' : 'content_filter';
  return {
    id: turn,
    object: 'response',
    created_at: createdAt,
    status,
    error: null,
    incomplete_details: status === 'incomplete' ? { reason } : null,
    instructions: null,
    model,
    output,
    previous_response_id: null,
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

function statusAfter(finishReason: string | undefined): Status {
  return finishReason === 'length' || finishReason === 'content_filter' ? 'incomplete' : 'completed';
}

/** By place, which kind of item it is: `msg_…_0`. */
function idOf(prefix: string, { turn }: ResponseView, place: number): string {
  return `${prefix}_${turn.slice('turn_'.length)}_${place}`;
}

function thoughtItem(id: string, text: string): JsonObject {
  return { id, type: 'reasoning', summary: [], content: [{ type: 'reasoning_text', text }] };
}

function textPart(text: string, logprobs: readonly unknown[]): JsonObject {
  return { type: 'output_text', text, annotations: [], logprobs };
}

function messageItem(id: string, status: Status, content: readonly JsonObject[]): JsonObject {
  return { id, type: 'message', role: 'assistant', status, content };
}

function callItem(id: string, status: Status, { callId, name, written }: CallWords): JsonObject {
  return { id, type: 'function_call', status, call_id: callId, name, arguments: written };
}

interface CallWords {
  readonly callId: string;
  readonly name: string;
  readonly written: string;
}

const noWords = '';

function words(value: unknown): string {
  return typeof value === 'string' ? value : noWords;
}

function logprobsIn(choice: JsonObject | undefined): readonly unknown[] {
  const logprobs = choice?.['logprobs'];
  const content = isJsonObject(logprobs) ? logprobs['content'] : undefined;
  return Array.isArray(content) ? content : [];
}

function choiceIn(raw: RawObject): JsonObject | undefined {
  const choices = raw['choices'];
  const choice: unknown = Array.isArray(choices) ? choices[0] : undefined;
  return isJsonObject(choice) ? choice : undefined;
}

/** @param raw a whole answer of the chat API */
export function wholeResponse(raw: RawObject, view: ResponseView, usage: TokenUsage | undefined): JsonObject {
  const choice = choiceIn(raw);
  const message = isJsonObject(choice?.['message']) ? choice['message'] : {};
  const finishReason = words(choice?.['finish_reason']);
  const status = statusAfter(finishReason);
  const output: JsonObject[] = [];
  const thought = words(message['reasoning'] ?? message['reasoning_content']);
  if (thought !== '') output.push(thoughtItem(idOf('rs', view, output.length), thought));
  const text = words(message['content']);
  const calls = Array.isArray(message['tool_calls']) ? message['tool_calls'].filter(isJsonObject) : [];
  if (text !== '' || calls.length === 0) {
    const part = textPart(text, view.wantsLogprobs ? logprobsIn(choice) : []);
    output.push(messageItem(idOf('msg', view, output.length), status, [part]));
  }
  for (const call of calls) {
    const called = isJsonObject(call['function']) ? call['function'] : {};
    const said = { callId: words(call['id']), name: words(called['name']), written: words(called['arguments']) };
    output.push(callItem(idOf('fc', view, output.length), 'completed', said));
  }
  const createdAt = typeof raw['created'] === 'number' ? raw['created'] : 0;
  return responseOf(view, { createdAt, status, output, finishReason, usage });
}

/** An item that is being written. */
type Open =
  | { readonly kind: 'thought' | 'text'; readonly id: string; text: string; readonly logprobs: unknown[] }
  | { readonly kind: 'call'; readonly id: string; readonly index: number; callId: string; name: string; text: string };

/** The events of one response, in order. */
export class ResponseEvents {
  private readonly output: JsonObject[] = [];
  private open: Open | undefined;
  private sequence = 0;
  private createdAt = 0;
  private finishReason: string | undefined;
  private usage: TokenUsage | undefined;

  constructor(private readonly view: ResponseView) {}

  /** What a frame adds. */
  frame({ raw, reasoning, content, toolCallDeltas = [], finishReason, usage }: EngineFrame): string {
    const begun = this.sequence === 0 ? this.begin(raw) : '';
    this.finishReason = finishReason ?? this.finishReason;
    this.usage = usage ?? this.usage;
    const logprobs = this.view.wantsLogprobs ? logprobsIn(choiceIn(raw)) : [];
    const thought = reasoning === undefined || reasoning === '' ? '' : this.addWords('thought', reasoning, []);
    const said = content === undefined || content === '' ? '' : this.addWords('text', content, logprobs);
    return begun + thought + said + toolCallDeltas.map((delta) => this.addCall(delta)).join('');
  }

  /** The end of the open item, and of the response. */
  end(): string {
    const status = statusAfter(this.finishReason);
    // An answer that says nothing is a message all the same.
    const empty = this.output.length === 0 && this.open === undefined ? this.begun('text') : '';
    const closed = this.close(status);
    const { createdAt, output, finishReason, usage } = this;
    const response = responseOf(this.view, { createdAt, status, output, finishReason, usage });
    return `${empty}${closed}${this.event(`response.${status}`, { response })}`;
  }

  private begin(raw: RawObject): string {
    this.createdAt = typeof raw['created'] === 'number' ? raw['created'] : 0;
    const response = responseOf(this.view, { createdAt: this.createdAt, status: 'in_progress', output: [] });
    return this.event('response.created', { response }) + this.event('response.in_progress', { response });
  }

  private addWords(kind: 'thought' | 'text', delta: string, logprobs: readonly unknown[]): string {
    const changed = this.open?.kind === kind ? '' : this.close('completed') + this.begun(kind);
    const { open } = this;
    if (open === undefined || open.kind === 'call') return changed;
    open.text += delta;
    open.logprobs.push(...logprobs);
    const at = { item_id: open.id, output_index: this.output.length, content_index: 0, delta };
    return (
      changed +
      (kind === 'text'
        ? this.event('response.output_text.delta', { ...at, logprobs })
        : this.event('response.reasoning_text.delta', at))
    );
  }

  private begun(kind: 'thought' | 'text'): string {
    const place = this.output.length;
    const id = idOf(kind === 'text' ? 'msg' : 'rs', this.view, place);
    this.open = { kind, id, text: '', logprobs: [] };
    const item = kind === 'text' ? messageItem(id, 'in_progress', []) : { ...thoughtItem(id, ''), content: [] };
    const part = kind === 'text' ? textPart('', []) : { type: 'reasoning_text', text: '' };
    const at = { item_id: id, output_index: place, content_index: 0 };
    return (
      this.event('response.output_item.added', { output_index: place, item }) +
      this.event('response.content_part.added', { ...at, part })
    );
  }

  private addCall({ index, id, name = '', arguments: written = '' }: ToolCallDelta): string {
    const { open } = this;
    let changed = '';
    if (open?.kind !== 'call' || open.index !== index) {
      changed = this.close('completed');
      const place = this.output.length;
      const itemId = idOf('fc', this.view, place);
      this.open = { kind: 'call', id: itemId, index, callId: id ?? itemId, name, text: '' };
      const item = callItem(itemId, 'in_progress', { callId: id ?? itemId, name, written: '' });
      changed += this.event('response.output_item.added', { output_index: place, item });
    }
    const { open: call } = this;
    if (call?.kind !== 'call' || written === '') return changed;
    call.text += written;
    const at = { item_id: call.id, output_index: this.output.length };
    return changed + this.event('response.function_call_arguments.delta', { ...at, delta: written });
  }

  private close(status: Status): string {
    const { open } = this;
    if (open === undefined) return '';
    this.open = undefined;
    const place = this.output.length;
    const at = { item_id: open.id, output_index: place };
    if (open.kind === 'call') {
      const item = callItem(open.id, 'completed', { callId: open.callId, name: open.name, written: open.text });
      this.output.push(item);
      return (
        this.event('response.function_call_arguments.done', { ...at, name: open.name, arguments: open.text }) +
        this.event('response.output_item.done', { output_index: place, item })
      );
    }
    const { id, text, logprobs } = open;
    const isText = open.kind === 'text';
    const part = isText ? textPart(text, logprobs) : { type: 'reasoning_text', text };
    const item = isText ? messageItem(id, status, [part]) : thoughtItem(id, text);
    this.output.push(item);
    const words = { ...at, content_index: 0, text };
    return (
      (isText
        ? this.event('response.output_text.done', { ...words, logprobs })
        : this.event('response.reasoning_text.done', words)) +
      this.event('response.content_part.done', { ...at, content_index: 0, part }) +
      this.event('response.output_item.done', { output_index: place, item })
    );
  }

  private event(type: string, fields: JsonObject): string {
    const event = JSON.stringify({ type, sequence_number: this.sequence, ...fields });
    this.sequence += 1;
    return `event: ${type}\ndata: ${event}\n\n`;
  }
}
