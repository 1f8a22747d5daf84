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
  /** False where the turn that it goes on from was not to be learned from. */
  readonly train: boolean;
}

/** What an answer says, as a client that sends whole conversations would send it; where nothing was said, its content is empty. */
export function earlierAnswer({
  turn,
  text,
  reasoning,
  toolCalls,
}: Pick<TurnCompleted, 'turn' | 'text' | 'reasoning' | 'toolCalls'>): JsonObject {
  const read: unknown = toolCalls.byteLength === 0 ? [] : JSON.parse(Buffer.from(toolCalls).toString('utf8'));
  const given = Array.isArray(read) ? read.filter(isJsonObject) : [];
  const before = (reasoning === '' ? 0 : 1) + (text === '' ? 0 : 1);
  // Where an engine names no call, its item's id names it.
  const named = (call: JsonObject, at: number) =>
    call['id'] === '' ? { ...call, id: idOfItem('fc', turn, before + at) } : call;
  const thought = reasoning === '' ? {} : { reasoning, reasoning_content: reasoning };
  const calls = given.length === 0 ? {} : { tool_calls: given.map(named) };
  return { role: 'assistant', content: text === '' && given.length > 0 ? null : text, ...thought, ...calls };
}

/** As `JSON.stringify` wrote it. */
export function readFromLog(json: Uint8Array): FromLog {
  const read: unknown = JSON.parse(Buffer.from(json.buffer, json.byteOffset, json.byteLength).toString());
  const { earlier, answers, train } = isJsonObject(read) ? read : {};
  const named = Object.entries(isJsonObject(answers) ? answers : {});
  return {
    earlier: Array.isArray(earlier) ? earlier.filter(isJsonObject) : [],
    answers: Object.fromEntries(named.filter((one): one is [string, JsonObject] => isJsonObject(one[1]))),
    train: train !== false,
  };
}

interface Reference {
  readonly turn: string;
  readonly kind: string;
  readonly place: number;
}

const itemId = /^(rs|msg|fc)_(\w{1,64})_(\d{1,4})$/;

/** By place, which kind of item it is: `msg_…_0`. */
export function idOfItem(kind: string, turn: string, place: number): string {
  return `${kind}_${turn.slice('turn_'.length)}_${place}`;
}

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

/** Each would be written out once more. */
export function namesEachOnce(items: readonly JsonObject[]): boolean {
  const ids = items.filter(isReference).map(({ id }) => id);
  return new Set(ids).size === ids.length;
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
  const named = callPlaces(items);
  const said = new Set<string>();
  return items.flatMap((item, at) => {
    if (!isReference(item)) return [item];
    if (answers === undefined) return [saying('')];
    const reference = referenceOf(item);
    const answer = reference === undefined ? undefined : answers[reference.turn];
    if (reference === undefined || answer === undefined) throw gatewayErrors.itemNotFound({ param: `input[${at}].id` });
    const { kind, turn } = reference;
    if (kind === 'fc') {
      const call = callOf(answer, reference, named.get(turn) ?? []);
      if (call === undefined) throw gatewayErrors.itemNotFound({ param: `input[${at}].id` });
      return [call];
    }
    // What came in several items, with thoughts or calls between them, is kept in one piece.
    if (said.has(kind + turn)) return [];
    said.add(kind + turn);
    return [kind === 'msg' ? saying(answer['content'] ?? '') : thinking(answer['reasoning'] ?? '')];
  });
}

function saying(content: unknown): JsonObject {
  return { type: 'message', role: 'assistant', content };
}

function thinking(text: unknown): JsonObject {
  return { type: 'reasoning', content: [{ type: 'reasoning_text', text }] };
}

/** Of each turn, the places of the calls that are named. */
function callPlaces(items: readonly JsonObject[]): Map<string, number[]> {
  const places = new Map<string, number[]>();
  for (const { kind, turn, place } of referencesIn(items)) {
    const list = places.get(turn) ?? [];
    if (kind === 'fc') list.push(place);
    places.set(turn, list);
  }
  for (const list of places.values()) list.sort((one, other) => one - other);
  return places;
}

function callOf(answer: JsonObject, { place }: Reference, named: readonly number[]): JsonObject | undefined {
  const { content, reasoning, tool_calls: given } = answer;
  const calls = Array.isArray(given) ? given.filter(isJsonObject) : [];
  // White space after a call is in the answer, and was no item: where all calls are named, their order says which is which.
  const before = (reasoning === undefined ? 0 : 1) + (content === null ? 0 : 1);
  const call = calls[named.length === calls.length ? named.indexOf(place) : place - before];
  const called = call?.['function'];
  if (call === undefined || !isJsonObject(called)) return undefined;
  const { name, arguments: written } = called;
  return { type: 'function_call', call_id: call['id'], name, arguments: written };
}
