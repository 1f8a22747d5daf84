// How does an answer read to a client of Anthropic's Messages API?
//
// In: an answer of the chat API, in one piece or in the pieces of its stream. Out: a message with its blocks (a thought,
// words, calls), or the events that build it. Pure.
import type { Capture, EngineFrame, RawObject, TokenUsage, ToolCallDelta } from '@backtalk/dialects';
import { isJsonObject, type JsonObject } from '@backtalk/kit/pure';
import { gatewayErrors } from '../errors.js';
import { anthropicEvent, errorEvent } from './anthropic-error.js';
import { brokenInput } from './messages-conversation.js';

export interface MessageView {
  readonly turn: string;
  /** The name that the client asked for. */
  readonly model: string;
}

const noUsage: TokenUsage = { promptTokens: 0, completionTokens: 0 };

function usageOf({ promptTokens, cachedTokens = 0, completionTokens }: TokenUsage): JsonObject {
  return {
    // Without those that were in a cache.
    input_tokens: promptTokens - cachedTokens,
    cache_creation_input_tokens: 0,
    cache_read_input_tokens: cachedTokens,
    output_tokens: completionTokens,
  };
}

interface Ending {
  readonly finishReason: string;
  /** Which of the client's texts ended it; undefined where none did. */
  readonly stopText: string | undefined;
}

const reasons: Readonly<Record<string, string>> = {
  tool_calls: 'tool_use',
  function_call: 'tool_use',
  length: 'max_tokens',
  content_filter: 'refusal',
};

const asked: ReadonlySet<string> = new Set(['stop', ...Object.keys(reasons)]);

/** False where the engine ended the answer itself, as where it stops. */
function isWhole(finishReason: string): boolean {
  return asked.has(finishReason);
}

function endedBy({ finishReason, stopText }: Ending, calls: number): JsonObject {
  const isText = stopText !== undefined && finishReason === 'stop';
  const own = isText ? 'stop_sequence' : calls > 0 ? 'tool_use' : 'end_turn';
  return { stop_reason: reasons[finishReason] ?? own, stop_sequence: isText ? stopText : null };
}

/** Engines name the text that they stopped at, or the token: vLLM and the built-in one, and SGLang. */
function stopTextIn(raw: RawObject): string | undefined {
  const choices = raw['choices'];
  const choice: unknown = Array.isArray(choices) ? choices[0] : undefined;
  const named = isJsonObject(choice) ? [choice['stop_reason'], choice['matched_stop']] : [];
  return named.find((reason) => typeof reason === 'string');
}

function messageOf({ turn, model }: MessageView, content: readonly JsonObject[], rest: JsonObject): JsonObject {
  return { id: turn, type: 'message', role: 'assistant', model, content, ...rest };
}

/** The signature says that the thought was this turn's: clients send back none that has none. */
function thoughtBlock(thinking: string, signature: string): JsonObject {
  return { type: 'thinking', thinking, signature };
}

/** A call needs an id by which its result comes back, whether its engine gave one or not. */
function callId(given: string, { turn }: MessageView, place: number): string {
  return given === '' ? `toolu_${turn.slice('turn_'.length)}_${place}` : given;
}

/** What a model wrote is an object, or is told as what it is. */
function inputOf(written: string): JsonObject {
  if (written.trim() === '') return {};
  try {
    const read: unknown = JSON.parse(written);
    if (isJsonObject(read)) return read;
  } catch {
    // Told below.
  }
  return { [brokenInput]: written };
}

function isBroken(input: JsonObject): boolean {
  return typeof input[brokenInput] === 'string';
}

/**
 * Throws `engine_failed` where the engine ended the answer itself.
 *
 * @param raw a whole answer of the chat API
 */
export function wholeMessage(
  raw: RawObject,
  { text, reasoning, toolCalls, finishReason, usage = noUsage }: Capture,
  view: MessageView,
): JsonObject {
  if (!isWhole(finishReason)) throw gatewayErrors.engineBroke();
  const content: JsonObject[] = [];
  if (reasoning !== '') content.push(thoughtBlock(reasoning, view.turn));
  // An answer that says nothing is words all the same.
  if (text !== '' || toolCalls.length === 0) content.push({ type: 'text', text });
  for (const { id, function: called } of toolCalls) {
    const input = inputOf(called.arguments);
    content.push({ type: 'tool_use', id: callId(id, view, content.length), name: called.name, input });
  }
  const ended = endedBy({ finishReason, stopText: stopTextIn(raw) }, toolCalls.length);
  return messageOf(view, content, { ...ended, usage: usageOf(usage) });
}

type WordsKind = 'thinking' | 'text';

interface HeldCall {
  readonly id: string;
  readonly name: string;
  written: string;
}

/** So that its reader does not take silence for the end. */
const waiting = anthropicEvent('ping', {});

/** The events of one message, in order. Calls are held until the end: only then is it known whether what was written is an object. */
export class MessageEvents {
  private isBegun = false;
  private places = 0;
  private open: WordsKind | 'call' | undefined;
  private readonly calls = new Map<number, HeldCall>();
  private finishReason = '';
  private stopText: string | undefined;
  private usage = noUsage;

  constructor(private readonly view: MessageView) {}

  /** What a frame adds. */
  frame({
    raw,
    reasoning = '',
    content = '',
    toolCallDeltas = [],
    finishReason,
    usage,
    promptIds,
  }: EngineFrame): string {
    this.usage = usage ?? this.usage;
    const begun = this.isBegun ? '' : this.begin(promptIds?.length ?? this.usage.promptTokens);
    this.finishReason = finishReason ?? this.finishReason;
    this.stopText = stopTextIn(raw) ?? this.stopText;
    const thought = reasoning === '' ? '' : this.addWords('thinking', reasoning);
    // Space around calls is nothing that was said.
    const isSpace = this.calls.size > 0 && content.trim() === '';
    const said = content === '' || isSpace ? '' : this.addWords('text', content);
    return begun + thought + said + toolCallDeltas.map((delta) => this.addCall(delta)).join('');
  }

  /** The end of what is open, and of the message. */
  end(): string {
    if (!isWhole(this.finishReason)) return errorEvent(gatewayErrors.engineBroke());
    const calls = [...this.calls.values()].map((call) => this.call(call)).join('');
    // An answer that says nothing is words all the same.
    const empty = this.places === 0 ? this.startWords('text') : '';
    const delta = endedBy({ finishReason: this.finishReason, stopText: this.stopText }, this.calls.size);
    const ended = anthropicEvent('message_delta', { delta, usage: usageOf(this.usage) });
    return calls + empty + this.close() + ended + anthropicEvent('message_stop', {});
  }

  private begin(promptTokens: number): string {
    this.isBegun = true;
    const rest = { stop_reason: null, stop_sequence: null, usage: usageOf({ ...noUsage, promptTokens }) };
    return anthropicEvent('message_start', { message: messageOf(this.view, [], rest) });
  }

  private addWords(kind: WordsKind, words: string): string {
    const delta = kind === 'text' ? { type: 'text_delta', text: words } : { type: 'thinking_delta', thinking: words };
    return this.startWords(kind) + this.delta(delta);
  }

  private startWords(kind: WordsKind): string {
    if (this.open === kind) return '';
    return this.start(kind, kind === 'text' ? { type: 'text', text: '' } : thoughtBlock('', ''));
  }

  private addCall({ index, id = '', name = '', arguments: written = '' }: ToolCallDelta): string {
    const call = this.calls.get(index);
    if (call === undefined) this.calls.set(index, { id, name, written });
    else call.written += written;
    return waiting;
  }

  private call({ id, name, written }: HeldCall): string {
    const block = { type: 'tool_use', id: callId(id, this.view, this.places), name, input: {} };
    const input = inputOf(written);
    // As it was written, which need not be how it is written anew.
    const json = isBroken(input) ? JSON.stringify(input) : written.trim();
    return (
      this.start('call', block) + (json === '' ? '' : this.delta({ type: 'input_json_delta', partial_json: json }))
    );
  }

  private start(kind: WordsKind | 'call', block: JsonObject): string {
    const closed = this.close();
    this.open = kind;
    const index = this.places++;
    return closed + anthropicEvent('content_block_start', { index, content_block: block });
  }

  private delta(delta: JsonObject): string {
    return anthropicEvent('content_block_delta', { index: this.places - 1, delta });
  }

  private close(): string {
    if (this.open === undefined) return '';
    const signature = { type: 'signature_delta', signature: this.view.turn };
    const signed = this.open === 'thinking' ? this.delta(signature) : '';
    this.open = undefined;
    return signed + anthropicEvent('content_block_stop', { index: this.places - 1 });
  }
}
