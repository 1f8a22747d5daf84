// What does a request of the Responses API leave to the log: an answer that it goes on from, and items of answers, by their ids?
//
// In: the request, then what the log has of it. Out: the turns that are meant, then the items themselves, as they were given
// out. An item's id says of which turn it is, of which kind, and at which place (`msg_…_0`). Pure.
import { isJsonObject, type JsonObject } from '@backtalk/kit/pure';
import type { TurnCompleted } from '@backtalk/proto/facts';
import { gatewayErrors } from '../errors.js';
import { unsupported } from './read-as.js';

export interface LeftToLog {
  /** The answer that it goes on from. */
  readonly previous: string | undefined;
  /** Turns of whose answers it names items. */
  readonly referred: readonly string[];
}

export interface FromLog {
  /** What was said up to the answer that it goes on from, that answer included. */
  readonly earlier: readonly JsonObject[];
  /** Messages of the chat API by turn. */
  readonly answers: Readonly<Record<string, JsonObject>>;
}

/** What an answer says, as a client that sends whole conversations would send it; where nothing was said, its content is empty. */
export function earlierAnswer({
  text,
  reasoning,
  toolCalls,
}: Pick<TurnCompleted, 'text' | 'reasoning' | 'toolCalls'>): JsonObject {
  const calls: unknown = toolCalls.byteLength === 0 ? [] : JSON.parse(Buffer.from(toolCalls).toString('utf8'));
  const called = Array.isArray(calls) && calls.length > 0;
  const thought = reasoning === '' ? {} : { reasoning, reasoning_content: reasoning };
  const content = text === '' && called ? null : text;
  return { role: 'assistant', content, ...thought, ...(called ? { tool_calls: calls } : {}) };
}

/** As `JSON.stringify` wrote it. */
export function readFromLog(json: Uint8Array): FromLog {
  const read: unknown = JSON.parse(Buffer.from(json.buffer, json.byteOffset, json.byteLength).toString());
  const { earlier, answers } = isJsonObject(read) ? read : {};
  const named = Object.entries(isJsonObject(answers) ? answers : {});
  return {
    earlier: Array.isArray(earlier) ? earlier.filter(isJsonObject) : [],
    answers: Object.fromEntries(named.filter((one): one is [string, JsonObject] => isJsonObject(one[1]))),
  };
}

interface Reference {
  readonly turn: string;
  readonly kind: string;
  readonly place: number;
}

const itemId = /^(rs|msg|fc)_(\w{1,64})_(\d{1,4})$/;
/** Each is read by itself. */
const turnsMax = 100;

export const tooManyReferences = unsupported(
  `it may name items of at most ${turnsMax} answers by their ids: send the items themselves (store: false)`,
);

export function leftToLog(items: unknown, previous: string | null | undefined): LeftToLog {
  const turns = referencesIn(items).map(({ turn }) => turn);
  return { previous: previous ?? undefined, referred: [...new Set(turns)] };
}

export function hasFewReferences(items: readonly JsonObject[]): boolean {
  return leftToLog(items, null).referred.length <= turnsMax;
}

function referencesIn(items: unknown): Reference[] {
  const named = Array.isArray(items) ? items.filter(isJsonObject).filter(isReference) : [];
  return named.map(referenceOf).filter((one) => one !== undefined);
}

function isReference({ type }: JsonObject): boolean {
  return type === 'item_reference';
}

function referenceOf({ id }: JsonObject): Reference | undefined {
  const [, kind, turn, place] = (typeof id === 'string' ? itemId.exec(id) : null) ?? [];
  return kind === undefined ? undefined : { kind, turn: `turn_${turn ?? ''}`, place: Number(place) };
}

/** The same items, each that is named by its id as it was given out; before the log was asked, as if it said nothing. */
export function withItems(items: readonly JsonObject[], answers: FromLog['answers'] | undefined): JsonObject[] {
  return items.map((item, at) => {
    if (!isReference(item)) return item;
    if (answers === undefined) return saying('');
    const reference = referenceOf(item);
    const answer = reference === undefined ? undefined : answers[reference.turn];
    const found = answer === undefined || reference === undefined ? undefined : itemOf(answer, reference, item['id']);
    if (found === undefined) throw gatewayErrors.itemNotFound({ param: `input[${at}].id` });
    return found;
  });
}

function saying(content: unknown): JsonObject {
  return { type: 'message', role: 'assistant', content };
}

function itemOf(answer: JsonObject, { kind, place }: Reference, id: unknown): JsonObject | undefined {
  const { content, reasoning, tool_calls: given } = answer;
  if (kind === 'msg') return saying(content ?? '');
  if (kind === 'rs') return { type: 'reasoning', content: [{ type: 'reasoning_text', text: reasoning ?? '' }] };
  const calls = Array.isArray(given) ? given.filter(isJsonObject) : [];
  const first = place - (reasoning === undefined ? 0 : 1);
  // White space after a call is in the answer, and was no item.
  const call = calls[first - (content === null ? 0 : 1)] ?? calls[first];
  const called = call?.['function'];
  if (call === undefined || !isJsonObject(called)) return undefined;
  const { name, arguments: written } = called;
  return { type: 'function_call', call_id: call['id'] === '' ? id : call['id'], name, arguments: written };
}
