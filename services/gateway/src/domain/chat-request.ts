// Is this a chat request that the gateway can serve?
//
// In: a body's bytes. Out: what the gateway needs of it, typed, and the rest as JSON, written once for engine and log; or
// a refusal that names the parameter. Fields that no engine's dialect is known to take are refused, and so is what would
// steer an engine: a template, a pattern to compile, an address to fetch. Pure.
import { isChatField } from '@backtalk/dialects/chat-fields';
import { isJsonObject, lastHumanMessage, type JsonObject } from '@backtalk/kit/pure';
import { z } from 'zod';
import { gatewayErrors } from '../errors.js';
import { answersIn } from './answer-key.js';
import { parseJson } from './json-body.js';
import { readFromLog, type LeftToLog } from './left-to-log.js';
import { flawOfPart, holdsMedia } from './message-part.js';
import { readMessages } from './messages-request.js';
import { questionsIn } from './question-key.js';
import { keyCharactersMax, readAs, unsupported } from './read-as.js';
import { readResponses, type RepeatedSettings } from './responses-request.js';
import { samplingOf, type Sampling } from './sampling.js';
import { sessionBodyKeys, sessionInBody, type DeclaredSession } from './session-name.js';
import { writeMessages, type WrittenMessages } from './written-messages.js';

/** An OpenAI chat message; `content` is text, a list of parts, or absent. */
export interface ChatMessage extends JsonObject {
  readonly role: string;
}

/**
 * What the gateway needs of a request. Where the request is large, so are bytes here and nothing else: it comes from the
 * thread that reads large bodies, and what is handed over as objects or texts would be copied on the event loop.
 */
export interface ChatRequest {
  readonly model: string;
  readonly messages: WrittenMessages;
  /** JSON array of the tools; empty where there are none. */
  readonly tools: Uint8Array;
  /** JSON object of what the model's chat template is given besides; empty where it is given nothing. */
  readonly templateArguments: Uint8Array;
  readonly stream: boolean;
  /** The client asked for a chunk with token counts. */
  readonly wantsUsage: boolean;
  readonly wantsLogprobs: boolean;
  readonly wantsTokenIds: boolean;
  /** By a field of another service: the client wrote no `chat_template_kwargs` itself. */
  readonly thinkingIsSwitched: boolean;
  /** OpenAI's `user` field, or `safety_identifier`, which follows it. */
  readonly user: string | undefined;
  readonly session: DeclaredSession;
  readonly sampling: Sampling;
  /** What keys of the answers in it are made of, oldest first. */
  readonly answers: readonly string[];
  /** What keys of what was said before the newest of them, and at the end, are made of. */
  readonly questions: readonly string[];
  /** Index of the last message that holds a person's words; -1: none does. */
  readonly humanMessage: number;
  /** Pictures, sound, files. */
  readonly hasMedia: boolean;
  /** By which it came, and is answered. */
  readonly api: ClientApi;
  /** Of the Responses API. */
  readonly repeated: RepeatedSettings | undefined;
  readonly lacking: Lacking | undefined;
  /** It goes on by its id from a turn that was not to be learned from. */
  readonly followsNo: boolean;
  /** Fields that are set and are not the gateway's own business, but the messages: small ones as they came, */
  readonly fields: JsonObject;
  /** and all others as JSON. */
  readonly writtenFields: Readonly<Record<string, Uint8Array>>;
}

/** Of the Responses API: what is named by ids, while the log was not asked for it. */
export interface Lacking extends LeftToLog {
  /** The request's own, to be read again with what is missing. */
  readonly body: Uint8Array;
}

export interface ReadingRules {
  readonly messagesMax: number;
  /** Of requests that name none. */
  readonly temperature: number;
  readonly api: ClientApi;
  /** Of its prompt: an answer when left out, or how many tokens it has. */
  readonly wanted?: 'answer' | 'count';
  /** JSON of what the log has of what the request names by ids (`FromLog`). */
  readonly fromLog?: Uint8Array | undefined;
}

/** OpenAI's API of chat completions or of responses, or Anthropic's of messages. */
export type ClientApi = 'chat' | 'responses' | 'messages';

const roles = new Set(['system', 'developer', 'user', 'assistant', 'tool', 'function']);
const gatewayFields: ReadonlySet<string> = new Set(sessionBodyKeys);
const unknownField = 'it is not among the fields that are taken here';
/** Engines compare every token with every one of them. */
const stopsMax = 64;
const choicesMax = 1_000;
/** Deeper values would overflow the stack where they are written out again. */
const depthMax = 200;

const flag = z.boolean('it must be true or false').nullish();

function numberIn(min: number, max = Infinity) {
  const number = z.number('it must be a number').min(min, `it must be at least ${min}`);
  return number.max(max, `it must be at most ${max}`).nullish();
}

function integerIn(min: number, max = Number.MAX_SAFE_INTEGER) {
  const integer = z.number('it must be a number').int('it must be an integer');
  return integer.min(min, `it must be at least ${min}`).max(max, `it must be at most ${max}`).nullish();
}

function atMost(length: number) {
  return z.array(z.unknown()).max(length, `it must hold at most ${length}`);
}

/** The message itself goes through as it came: it is stored and passed on. */
const message = z.custom<ChatMessage>(isJsonObject, 'it must be an object').superRefine((given, context) => {
  const refuse = (path: PropertyKey[], why: string) => context.addIssue({ code: 'custom', path, message: why });
  const { role, content } = given;
  if (!roles.has(role)) refuse(['role'], `it must be one of ${[...roles].join(', ')}`);
  if (isAbsent(content) && role !== 'assistant' && role !== 'function') refuse(['content'], 'it is missing');
  if (isAbsent(content) || typeof content === 'string') return;
  if (!Array.isArray(content)) return refuse(['content'], 'it must be a string or a list of parts');
  for (const [index, part] of content.entries()) {
    if (!isJsonObject(part)) refuse(['content', index], 'it must be an object');
    else {
      const flaw = flawOfPart(part);
      if (flaw !== undefined)
        context.addIssue({ code: 'custom', path: ['content', index, flaw.key], ...unsupported(flaw.why) });
    }
  }
});

/** Whatever the template of a model is asked with besides: switches, never its own arguments. */
const templateArguments = z.record(z.string(), z.unknown(), 'it must be an object').superRefine((given, context) => {
  for (const name of Object.keys(given)) {
    const value = given[name];
    const refuse = (why: string) => context.addIssue({ code: 'custom', path: [name], ...unsupported(why) });
    if (reservedArguments.has(name)) refuse('callers may not set it here');
    else if (typeof value === 'object' && value !== null) refuse('it must be a string, a number, true or false');
    else if (typeof value === 'string' && value.length > argumentCharactersMax)
      refuse(`it must have at most ${argumentCharactersMax} characters`);
  }
});
/** What the library that renders templates takes itself, and what the request says elsewhere. */
const reservedArguments = new Set([
  'chat_template',
  'conversation',
  'messages',
  'tools',
  'functions',
  'documents',
  'tokenize',
  'add_generation_prompt',
  'continue_final_message',
  'padding',
  'truncation',
  'max_length',
  'return_tensors',
  'return_dict',
  'return_assistant_tokens_mask',
  'tokenizer_kwargs',
]);
const argumentCharactersMax = 256;

const streamOptions = z.strictObject(
  { include_usage: flag, include_obfuscation: flag, continuous_usage_stats: flag },
  { error: ({ code }) => (code === 'unrecognized_keys' ? unknownField : 'it must be an object') },
);

/** Grammars and patterns of other kinds are compiled by engines, some of them without a bound. */
const responseFormat = z.looseObject(
  { type: z.literal(['text', 'json_object', 'json_schema'], 'it must be text, json_object or json_schema') },
  'it must be an object',
);
const structure = z.strictObject(
  { json: z.unknown().optional(), json_object: flag, choice: atMost(choicesMax).nullish() },
  { error: ({ code }) => (code === 'unrecognized_keys' ? unknownField : 'it must be an object') },
);

const schema = z.object({
  model: z.string('it must be a string'),
  temperature: numberIn(0, 2),
  top_p: numberIn(0, 1),
  min_p: numberIn(0, 1),
  top_k: integerIn(-1),
  presence_penalty: numberIn(-2, 2),
  frequency_penalty: numberIn(-2, 2),
  repetition_penalty: numberIn(0),
  max_tokens: integerIn(1),
  max_completion_tokens: integerIn(1),
  top_logprobs: integerIn(0, 20),
  seed: integerIn(Number.MIN_SAFE_INTEGER),
  n: integerIn(1).refine((n) => (n ?? 1) === 1, unsupported('an answer has one choice here; send n = 1')),
  stream: flag,
  stream_options: streamOptions.nullish(),
  stop: z
    .union([z.string(), atMost(stopsMax)], `it must be a string or a list of at most ${stopsMax}`)
    .refine((stop) => stop !== '' && !(Array.isArray(stop) && stop.includes('')), 'it must not be empty')
    .nullish(),
  stop_token_ids: atMost(stopsMax).nullish(),
  bad_words: atMost(stopsMax).nullish(),
  guided_choice: atMost(choicesMax).nullish(),
  response_format: responseFormat.nullish(),
  structured_outputs: structure.nullish(),
  chat_template_kwargs: templateArguments.nullish(),
  logprobs: flag,
  return_token_ids: flag,
  user: z.string('it must be a string').nullish(),
  safety_identifier: z.string('it must be a string').nullish(),
  modalities: z
    .array(z.unknown(), 'it must be a list')
    .refine((all) => all.every((one) => one === 'text'), unsupported('answers are text here'))
    .nullish(),
  // Of services that each write them otherwise: what is not understood switches nothing.
  enable_thinking: z.unknown().optional(),
  thinking: z.unknown().optional(),
  reasoning: z.unknown().optional(),
  tools: z.array(z.unknown(), 'it must be a list').nullish(),
  messages: z.array(message, 'it must be a list').min(1, 'it must hold at least one message'),
});

export function readChat(bytes: Buffer, rules: ReadingRules): ChatRequest {
  const body = parseJson(bytes);
  if (isJsonObject(body) && isDeeperThan(body, depthMax))
    throw gatewayErrors.invalidJson({ why: `it is nested deeper than ${depthMax}` });
  const { api, messagesMax, wanted } = rules;
  if (api === 'chat') return readChatRequest(body, rules);
  if (api === 'messages') return { ...readChatRequest(readMessages(body, messagesMax, wanted), rules), api };
  const fromLog = rules.fromLog === undefined ? undefined : readFromLog(rules.fromLog);
  const { chat, repeated, leftToLog } = readResponses(body, messagesMax, fromLog);
  const isWhole = fromLog !== undefined || (leftToLog.previous === undefined && leftToLog.referred.length === 0);
  const lacking = isWhole ? undefined : { ...leftToLog, body: bytes };
  return { ...readChatRequest(chat, rules), api, repeated, lacking, followsNo: fromLog?.train === false };
}

export function readChatRequest(
  body: unknown,
  { messagesMax, temperature }: Pick<ReadingRules, 'messagesMax' | 'temperature'>,
): ChatRequest {
  refuseManyMessages(body, messagesMax);
  const { value, fields: all } = readAs(schema, body);
  const thinking = value.chat_template_kwargs == null ? thinkingOf(value) : undefined;
  const switched = thinking === undefined ? all : { ...all, chat_template_kwargs: { enable_thinking: thinking } };
  const { fields, writtenFields } = fieldsForEngines(withPlainTools(switched));
  const stream = value.stream ?? false;
  const hasTools = (value.tools ?? []).length > 0;
  const hasArguments = thinking !== undefined || Object.keys(value.chat_template_kwargs ?? {}).length > 0;
  return {
    model: value.model,
    messages: writeMessages(value.messages.map(asTemplatesKnow)),
    tools: hasTools ? (writtenFields['tools'] ?? nothing) : nothing,
    templateArguments: hasArguments ? (writtenFields['chat_template_kwargs'] ?? nothing) : nothing,
    stream,
    wantsUsage: stream && (value.stream_options?.include_usage ?? false),
    wantsLogprobs: value.logprobs ?? false,
    wantsTokenIds: value.return_token_ids ?? false,
    thinkingIsSwitched: thinking !== undefined,
    user: value.user ?? value.safety_identifier ?? undefined,
    session: sessionInBody(all),
    sampling: samplingOf(all, temperature),
    answers: answersIn(value.messages),
    questions: questionsIn(value.messages),
    humanMessage: lastHumanMessage(value.messages),
    hasMedia: holdsMedia(value.messages),
    api: 'chat',
    repeated: undefined,
    lacking: undefined,
    followsNo: false,
    fields,
    writtenFields,
  };
}

/** What services whose models think call the switch that templates know as `enable_thinking`. */
function thinkingOf({ enable_thinking: flagged, thinking, reasoning }: z.infer<typeof schema>): boolean | undefined {
  if (typeof flagged === 'boolean') return flagged;
  const type = isJsonObject(thinking) ? thinking['type'] : undefined;
  if (type === 'disabled' || type === 'enabled') return type === 'enabled';
  return isJsonObject(reasoning) && reasoning['effort'] === 'none' ? false : undefined;
}

const nothing = new Uint8Array(0);

/** OpenAI's name of the system role for newer models: templates of open models drop it, or write a role that the model never saw. */
function asTemplatesKnow(given: ChatMessage): ChatMessage {
  return given.role === 'developer' ? { ...given, role: 'system' } : given;
}
/** Engines are not told that calls are to follow a schema strictly: clients send that unasked, and some engines would have a grammar write them. */
function withPlainTools(all: JsonObject): JsonObject {
  const { tools } = all;
  if (!Array.isArray(tools)) return all;
  const plain = tools.map((tool: unknown) => {
    const called = isJsonObject(tool) ? tool['function'] : undefined;
    if (!isJsonObject(tool) || !isJsonObject(called) || !('strict' in called)) return tool;
    const { strict: _strict, ...rest } = called;
    return { ...tool, function: rest };
  });
  return { ...all, tools: plain };
}

/** Each message is looked at, hashed and stored by itself. */
function refuseManyMessages(body: unknown, messagesMax: number): void {
  const messages = isJsonObject(body) ? body['messages'] : undefined;
  if (Array.isArray(messages) && messages.length > messagesMax)
    throw gatewayErrors.invalidParameter({ param: 'messages', why: `it may hold at most ${messagesMax} messages` });
}

/** Null counts as absent, whatever the field. */
function fieldsForEngines(all: JsonObject): Pick<ChatRequest, 'fields' | 'writtenFields'> {
  const fields: Record<string, unknown> = {};
  const writtenFields: Record<string, Uint8Array> = {};
  for (const name of Object.keys(all)) {
    const value = all[name];
    if (isAbsent(value) || gatewayFields.has(name)) continue;
    if (!isChatField(name))
      throw gatewayErrors.unsupportedParameter({ param: name.slice(0, keyCharactersMax), why: unknownField });
    if (name === 'messages') continue;
    const json = typeof value === 'object' || typeof value === 'string' ? JSON.stringify(value) : '';
    if (json.length > smallCharactersMax || writtenAlways.has(name)) writtenFields[name] = Buffer.from(json);
    else fields[name] = value;
  }
  return { fields, writtenFields };
}

/** The log has them too. */
const writtenAlways: ReadonlySet<string> = new Set(['tools', 'chat_template_kwargs']);
const smallCharactersMax = 256;

function isAbsent(value: unknown): value is undefined | null {
  return value === undefined || value === null;
}

/** True when objects and lists are nested deeper than the limit. Looks no deeper than that. */
function isDeeperThan(value: unknown, limit: number): boolean {
  if (typeof value !== 'object' || value === null) return false;
  if (limit === 0) return true;
  return (Array.isArray(value) ? value : Object.values(value)).some((child) => isDeeperThan(child, limit - 1));
}
