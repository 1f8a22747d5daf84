// What does a request of OpenAI's Responses API ask for, as a chat request?
//
// In: a body of POST /v1/responses. Out: the body of the chat request that asks for the same, and what its answer repeats of
// it; or a refusal that names the parameter. Items of one answer (a thought, a message, calls) become one message again, so
// that the answer is known when it comes back. What is named by an id is left to the log, and given with what that has. Tools that OpenAI's service runs itself are left out where an agent offers them beside its own, and refused where
// nothing else is offered. Pure.
import { isJsonObject, type JsonObject } from '@backtalk/kit/pure';
import { z } from 'zod';
import { gatewayErrors } from '../errors.js';
import { alternating, plain } from './alternating.js';
import {
  hasFewReferences,
  leftToLog,
  namesEachOnce,
  tooManyReferences,
  withItems,
  type FromLog,
  type LeftToLog,
} from './left-to-log.js';
import { flawOfPart } from './message-part.js';
import { readAs, unsupported } from './read-as.js';

/** Of a request, what each of its answers says again. Instructions and tools are left out: they may be long, and clients have them. */
export interface RepeatedSettings {
  readonly temperature: number | null;
  readonly top_p: number | null;
  readonly max_output_tokens: number | null;
  readonly parallel_tool_calls: boolean;
  readonly metadata: JsonObject;
  readonly previous_response_id: string | null;
}

export interface ReadResponses {
  readonly chat: JsonObject;
  readonly leftToLog: LeftToLog;
  readonly repeated: RepeatedSettings;
}

const roles: ReadonlySet<unknown> = new Set(['user', 'assistant', 'system', 'developer']);
const noWords = 'it must be a string';
const wordsKinds: ReadonlySet<unknown> = new Set(['input_text', 'output_text', 'text']);

type Refuse = (path: PropertyKey[], why: string, isUnsupported?: boolean) => void;

const item = z.custom<JsonObject>(isJsonObject, 'it must be an object').superRefine((given, context) => {
  const refuse: Refuse = (path, why, isUnsupported = false) =>
    context.addIssue({ code: 'custom', path, ...(isUnsupported ? unsupported(why) : { message: why }) });
  const needsWords = (key: string) => {
    if (typeof given[key] !== 'string') refuse([key], noWords);
  };
  switch (given['type'] ?? 'message') {
    case 'message':
      if (!roles.has(given['role'])) refuse(['role'], `it must be one of ${[...roles].join(', ')}`);
      refuseContent(given['content'], 'content', refuse);
      break;
    case 'function_call':
      ['call_id', 'name', 'arguments'].forEach(needsWords);
      break;
    case 'function_call_output':
      needsWords('call_id');
      refuseContent(given['output'], 'output', refuse);
      break;
    case 'reasoning':
      break;
    case 'item_reference':
      needsWords('id');
      break;
    default:
      refuse(['type'], 'items of this kind are not taken here', true);
  }
});

function refuseContent(content: unknown, key: string, refuse: Refuse): void {
  if (typeof content === 'string') return;
  if (!Array.isArray(content)) return refuse([key], 'it must be a string or a list of parts');
  for (const [index, part] of content.entries()) {
    if (!isJsonObject(part)) refuse([key, index], 'it must be an object');
    else if (wordsKinds.has(part['type']) && typeof part['text'] !== 'string') refuse([key, index, 'text'], noWords);
    else {
      const flaw = flawOfPart(part);
      if (flaw !== undefined) refuse([key, index, flaw.key], flaw.why, true);
    }
  }
}

const tool = z.custom<JsonObject>(isJsonObject, 'it must be an object').superRefine((given, context) => {
  const refuse = (key: string) => context.addIssue({ code: 'custom', path: [key], message: noWords });
  if (typeof given['type'] !== 'string') refuse('type');
  else if (isFunction(given) && typeof given['name'] !== 'string') refuse('name');
});

const toolList = z.array(tool, 'it must be a list').superRefine((given, context) => {
  if (given.length === 0 || given.some(isFunction)) return;
  const why = 'it must be function: tools that a service runs itself are not had here';
  context.addIssue({ code: 'custom', path: [0, 'type'], ...unsupported(why) });
});

function isFunction({ type }: JsonObject): boolean {
  return type === 'function';
}

const toolChoice = z.custom<unknown>((given) => given === undefined || isChoice(given), {
  ...unsupported('it must be auto, none, required, or a function by its name'),
});
const choices: ReadonlySet<unknown> = new Set(['auto', 'none', 'required']);

function isChoice(given: unknown): boolean {
  if (given === null || choices.has(given)) return true;
  return isJsonObject(given) && given['type'] === 'function' && typeof given['name'] === 'string';
}

const format = z.looseObject(
  { type: z.literal(['text', 'json_object', 'json_schema'], 'it must be text, json_object or json_schema') },
  'it must be an object',
);
const text = z.object({ format: format.nullish() }, 'it must be an object');
const reasoning = z.looseObject({ effort: z.string(noWords).nullish() }, 'it must be an object');

/** OpenAI's bounds: the answer says it again. */
const metadataMax = { keys: 16, key: 64, value: 512 };
const metadata = z
  .record(z.string(), z.string(noWords), 'it must be an object')
  .refine((given) => Object.keys(given).length <= metadataMax.keys, `it may have at most ${metadataMax.keys} keys`)
  .refine(
    (given) =>
      Object.entries(given).every(([key, { length }]) => key.length <= metadataMax.key && length <= metadataMax.value),
    `its keys may have ${metadataMax.key} characters, and its values ${metadataMax.value}`,
  );

/** Only what says that it is wanted speaks against a request: null, false and the default value are no wish. */
function notHere(why: string, ...idle: readonly unknown[]) {
  return z.custom<unknown>((given) => given == null || given === false || idle.includes(given), unsupported(why));
}

const schema = z.object({
  model: z.string(noWords),
  input: z.union(
    [
      z.string(),
      z
        .array(item)
        .min(1, 'it must hold at least one item')
        .refine(hasFewReferences, tooManyReferences)
        .refine(namesEachOnce, 'it may name an item by its id once'),
    ],
    'it must be a string or a list of items',
  ),
  instructions: z.string(noWords).nullish(),
  tools: toolList.nullish(),
  tool_choice: toolChoice.optional(),
  text: text.nullish(),
  reasoning: reasoning.nullish(),
  max_output_tokens: z
    .number('it must be a number')
    .int('it must be an integer')
    .min(1, 'it must be at least 1')
    .nullish(),
  parallel_tool_calls: z.boolean('it must be true or false').nullish(),
  metadata: metadata.nullish(),
  include: z.array(z.unknown(), 'it must be a list').nullish(),
  stream: z.boolean('it must be true or false').nullish(),
  previous_response_id: z.string(noWords).nullish(),
  conversation: notHere('go on by previous_response_id, or send the whole conversation as input').optional(),
  prompt: notHere('prompts are not kept here: send the words themselves').optional(),
  background: notHere('an answer is given at once, or as a stream').optional(),
  truncation: notHere('nothing is left out of an input here: send what fits', 'disabled').optional(),
  messages: notHere('it is called input here').optional(),
});

type Read = z.infer<typeof schema>;

const sameInChat: ReadonlySet<string> = new Set(['model', 'stream', 'parallel_tool_calls', 'metadata', 'reasoning']);
/** Said in another way in the chat request, or of no use to an engine of one's own. */
const readHere: ReadonlySet<string> = new Set([
  ...Object.keys(schema.shape).filter((key) => !sameInChat.has(key)),
  'stream_options',
  'max_tool_calls',
  // Of Codex: which of its installations asks.
  'client_metadata',
]);

/** @param fromLog what the log has of what the request names by ids; without it, that is passed over */
export function readResponses(body: unknown, messagesMax: number, fromLog?: FromLog): ReadResponses {
  const input = isJsonObject(body) ? body['input'] : undefined;
  // The instructions are one message more.
  if (Array.isArray(input) && input.length >= messagesMax)
    throw gatewayErrors.invalidParameter({ param: 'input', why: `it must hold fewer than ${messagesMax} items` });
  const { value, fields } = readAs(schema, body);
  const messages = messagesOf(value, fromLog);
  if (messages.length === 0) throw gatewayErrors.invalidParameter({ param: 'input', why: 'it must say something' });
  if (messages.length > messagesMax)
    throw gatewayErrors.invalidParameter({
      param: 'previous_response_id',
      why: `with what was said before it, there are more than ${messagesMax} messages`,
    });
  const others = Object.fromEntries(Object.entries(fields).filter(([key]) => !readHere.has(key)));
  const { temperature, top_p: topP } = others;
  return {
    chat: { ...others, ...askedBy(value), messages },
    leftToLog: leftToLog(value.input, value.previous_response_id),
    repeated: {
      temperature: typeof temperature === 'number' ? temperature : null,
      top_p: typeof topP === 'number' ? topP : null,
      max_output_tokens: value.max_output_tokens ?? null,
      parallel_tool_calls: value.parallel_tool_calls ?? true,
      metadata: value.metadata ?? {},
      previous_response_id: value.previous_response_id ?? null,
    },
  };
}

function askedBy(asked: Read): JsonObject {
  const { tool_choice: choice, max_output_tokens: tokens, include, stream } = asked;
  const effort = asked.reasoning?.effort ?? 'none';
  const offered = (asked.tools ?? []).filter(isFunction);
  const wanted = formatOf(asked.text?.format ?? {});
  return {
    ...(offered.length === 0 ? {} : { tools: offered.map(chatTool) }),
    // `none` is the template's switch.
    ...(effort === 'none' ? {} : { reasoning_effort: effort }),
    ...(choice == null ? {} : { tool_choice: isJsonObject(choice) ? chatTool(choice) : choice }),
    ...(wanted === undefined ? {} : { response_format: wanted }),
    ...(tokens == null ? {} : { max_completion_tokens: tokens }),
    ...(include?.includes('message.output_text.logprobs') === true ? { logprobs: true } : {}),
    // The last event of a stream has the token counts.
    ...(stream === true ? { stream_options: { include_usage: true } } : {}),
  };
}

/** Not told that calls are to follow the schema strictly: clients send that unasked, and it would have a grammar write them. */
function chatTool({ type, strict: _strict, ...described }: JsonObject): JsonObject {
  return { type, function: Object.fromEntries(Object.entries(described).filter(([, value]) => value !== null)) };
}

function formatOf({ type, ...described }: JsonObject): JsonObject | undefined {
  if (type === undefined || type === 'text') return undefined;
  return type === 'json_schema' ? { type, json_schema: described } : { type };
}

function messagesOf({ input, instructions }: Read, fromLog: FromLog | undefined): JsonObject[] {
  const { earlier, answers } = fromLog ?? { earlier: [], answers: undefined };
  const items = typeof input === 'string' ? [{ role: 'user', content: input }] : input;
  const said = messagesIn(withItems(items, answers));
  // Its own take the place of those of before.
  const kept = instructions == null ? earlier : earlier.filter(({ role }) => role !== 'system');
  const told = kept.find(({ role }) => role === 'system')?.['content'];
  // Clients that have no instructions say the same again at the head of each input.
  const isNew = ({ role, content }: JsonObject) =>
    !(isSystem(role) && typeof content === 'string' && typeof told === 'string' && told.includes(content));
  return alternating([{ role: 'system', content: instructions ?? '' }, ...kept, ...said.filter(isNew)]);
}

function isSystem(role: unknown): boolean {
  return role === 'system' || role === 'developer';
}

/** One answer, as its items come. */
class Answer {
  private readonly calls: JsonObject[] = [];
  private content: unknown = null;
  private thought = '';

  /** False where it cannot be of this answer any more. */
  add(given: JsonObject): boolean {
    if (given['type'] === 'function_call') {
      const { call_id: id, name, arguments: written } = given;
      this.calls.push({ id, type: 'function', function: { name, arguments: written } });
      return true;
    }
    if (given['type'] === 'reasoning') {
      if (this.thought !== '' || this.isSaid) return false;
      this.thought = thoughtIn(given);
      return true;
    }
    const content = chatContent(given['content']);
    // What is said after a call whose result has not come yet is of the same answer.
    if (this.calls.length > 0) return this.goOn(content);
    if (this.content !== null) return false;
    this.content = content;
    return true;
  }

  private goOn(content: unknown): boolean {
    if (typeof content !== 'string' || !(this.content === null || typeof this.content === 'string')) return false;
    this.content = (this.content ?? '') + content;
    return true;
  }

  message(): JsonObject {
    const { content, thought, calls } = this;
    return {
      role: 'assistant',
      content,
      // By both names that templates of open models know.
      ...(thought === '' ? {} : { reasoning: thought, reasoning_content: thought }),
      ...(calls.length === 0 ? {} : { tool_calls: calls }),
    };
  }

  /** A thought alone, as of an answer that was cut off, is nothing that was said. */
  get isSaid(): boolean {
    return this.content !== null || this.calls.length > 0;
  }
}

function messagesIn(items: readonly JsonObject[]): JsonObject[] {
  const messages: JsonObject[] = [];
  let answer: Answer | undefined;
  const close = (): void => {
    if (answer?.isSaid === true) messages.push(answer.message());
    answer = undefined;
  };
  for (const given of items) {
    const { type, role } = given;
    if (type === 'function_call' || type === 'reasoning' || role === 'assistant') {
      answer ??= new Answer();
      if (answer.add(given)) continue;
      close();
      answer = new Answer();
      answer.add(given);
    } else {
      close();
      if (type === 'function_call_output')
        messages.push({ role: 'tool', tool_call_id: given['call_id'], content: chatContent(given['output']) });
      else messages.push({ role, content: chatContent(given['content']) });
    }
  }
  close();
  return messages;
}

function chatContent(content: unknown): unknown {
  return Array.isArray(content) ? plain({ content: content.filter(isJsonObject).map(chatPart) })['content'] : content;
}

function chatPart(part: JsonObject): JsonObject {
  const { type } = part;
  if (type === 'input_text' || type === 'output_text') return { type: 'text', text: part['text'] };
  if (type !== 'input_image') return part;
  const { image_url: url, detail } = part;
  return { type: 'image_url', image_url: { url, ...(typeof detail === 'string' ? { detail } : {}) } };
}

function thoughtIn({ content }: JsonObject): string {
  const parts = Array.isArray(content) ? content.filter(isJsonObject) : [];
  return parts.map((part) => (typeof part['text'] === 'string' ? part['text'] : '')).join('');
}
