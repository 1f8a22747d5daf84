// What does a request of Anthropic's Messages API ask for, as a chat request?
//
// In: a body of POST /v1/messages. Out: the body of the chat request that asks for the same; or a refusal that names the
// parameter. Tools that a client holds back are offered once something in the conversation brings them in. Tools that
// Anthropic's service runs itself are left out where an agent offers them beside its own, and refused where nothing else is
// offered, and what that service did itself in an earlier answer is left out. Pure.
import { isJsonObject, type JsonObject } from '@backtalk/kit/pure';
import { z } from 'zod';
import { gatewayErrors } from '../errors.js';
import { blocksOf, chatMessages } from './messages-conversation.js';
import { readAs, unsupported } from './read-as.js';

const noWords = 'it must be a string';
const noObject = 'it must be an object';
const noList = 'it must be a string or a list of blocks';

type Refuse = (path: PropertyKey[], why: string, isUnsupported?: boolean) => void;

/** They bring no words of a client's own: some are what Anthropic's service made in an earlier answer. */
const idle: ReadonlySet<unknown> = new Set([
  'redacted_thinking',
  'tool_addition',
  'tool_removal',
  'compaction',
  'server_tool_use',
  'mcp_tool_use',
  'mcp_tool_listing',
  'container_upload',
  'fallback',
  'browser_state',
]);
const servicesResult = /^\w{1,64}_tool_result$/;

function refuseBlocks(content: unknown, path: PropertyKey[], refuse: Refuse): void {
  if (typeof content === 'string') return;
  if (!Array.isArray(content)) return refuse(path, noList);
  for (const [index, block] of content.entries()) {
    const at = [...path, index];
    if (isJsonObject(block)) refuseBlock(block, at, refuse);
    else refuse(at, noObject);
  }
}

function refuseBlock(block: JsonObject, at: PropertyKey[], refuse: Refuse): void {
  const { type } = block;
  const needsWords = (key: string) => {
    if (typeof block[key] !== 'string') refuse([...at, key], noWords);
  };
  if (idle.has(type) || (typeof type === 'string' && servicesResult.test(type))) return;
  switch (type) {
    case 'text':
    case 'thinking':
      needsWords(type);
      break;
    case 'image':
    case 'document':
      refuseSource(block['source'], [...at, 'source'], refuse);
      break;
    case 'search_result':
      refuseBlocks(block['content'], [...at, 'content'], refuse);
      break;
    case 'tool_use':
      ['id', 'name'].forEach(needsWords);
      if (block['input'] === undefined) refuse([...at, 'input'], noObject);
      break;
    case 'tool_reference':
      needsWords('tool_name');
      break;
    case 'tool_result':
      needsWords('tool_use_id');
      if (block['content'] != null) refuseBlocks(block['content'], [...at, 'content'], refuse);
      break;
    default:
      refuse([...at, 'type'], 'blocks of this kind are not taken here', true);
  }
}

function refuseSource(source: unknown, at: PropertyKey[], refuse: Refuse): void {
  if (!isJsonObject(source)) return refuse(at, noObject);
  const { type, data, media_type: mediaType, content } = source;
  if (type === 'content') return refuseBlocks(content, [...at, 'content'], refuse);
  if (type !== 'base64' && type !== 'text')
    return refuse([...at, 'type'], 'addresses and files of a service are not fetched; send the data itself', true);
  if (typeof data !== 'string') refuse([...at, 'data'], noWords);
  if (typeof mediaType !== 'string') refuse([...at, 'media_type'], noWords);
}

const roles: ReadonlySet<unknown> = new Set(['user', 'assistant', 'system']);

const message = z.custom<JsonObject>(isJsonObject, noObject).superRefine((given, context) => {
  const refuse: Refuse = (path, why, isUnsupported = false) =>
    context.addIssue({ code: 'custom', path, ...(isUnsupported ? unsupported(why) : { message: why }) });
  if (!roles.has(given['role'])) refuse(['role'], `it must be one of ${[...roles].join(', ')}`);
  refuseBlocks(given['content'], ['content'], refuse);
});

const system = z.union([z.string(), z.array(z.looseObject({ type: z.literal('text'), text: z.string() }))], noList);

const tool = z.custom<JsonObject>(isJsonObject, noObject).superRefine((given, context) => {
  if (typeof given['name'] === 'string' || !isCustom(given)) return;
  context.addIssue({ code: 'custom', path: ['name'], message: noWords });
});

const toolList = z.array(tool, 'it must be a list').superRefine((given, context) => {
  if (given.length === 0 || given.some(isCustom)) return;
  const why = 'it must be custom, with an input_schema: tools that a service knows or runs itself are not had here';
  context.addIssue({ code: 'custom', path: [0, 'type'], ...unsupported(why) });
});

/** Described by the client, and run by it. */
function isCustom({ type }: JsonObject): boolean {
  return type == null || type === 'custom';
}

const choices: ReadonlyMap<string, string> = new Map([
  ['auto', 'auto'],
  ['any', 'required'],
  ['none', 'none'],
]);
const toolChoice = z
  .looseObject({ type: z.string(noWords) }, noObject)
  .refine(
    ({ type, name }) => choices.has(type) || (type === 'tool' && typeof name === 'string'),
    unsupported('its type must be auto, any, none, or tool with a name'),
  );

const outputFormat = z.looseObject(
  { type: z.literal('json_schema', 'it must be json_schema'), schema: z.unknown() },
  noObject,
);

/** Only what says that it is wanted speaks against a request. */
function notHere(why: string) {
  return z.custom<unknown>((given) => given == null || (Array.isArray(given) && given.length === 0), unsupported(why));
}

const userCharactersMax = 1_024;

const schema = z.object({
  model: z.string(noWords),
  messages: z.array(message, 'it must be a list').min(1, 'it must hold at least one message'),
  max_tokens: z.number('it must be a number').int('it must be an integer').min(1, 'it must be at least 1'),
  system: system.nullish(),
  tools: toolList.nullish(),
  tool_choice: toolChoice.nullish(),
  stop_sequences: z.array(z.string(noWords), 'it must be a list').nullish(),
  stream: z.boolean('it must be true or false').nullish(),
  thinking: z.looseObject({ type: z.string(noWords) }, noObject).nullish(),
  output_config: z
    .looseObject({ effort: z.string(noWords).nullish(), format: outputFormat.nullish() }, noObject)
    .nullish(),
  output_format: outputFormat.nullish(),
  metadata: z
    .looseObject(
      { user_id: z.string(noWords).max(userCharactersMax, `it may have ${userCharactersMax} characters`).nullish() },
      noObject,
    )
    .nullish(),
  thread: z.unknown().optional(),
  compaction: notHere('conversations are not made shorter here').optional(),
  container: notHere('nothing is run here').optional(),
  mcp_servers: notHere('servers are not connected to from here: offer their tools yourself').optional(),
});

/** Where its tokens are to be counted, nothing is asked of an answer. */
const counted = schema.extend({ max_tokens: schema.shape.max_tokens.nullish() });

type Read = z.infer<typeof counted>;

const sameInChat: ReadonlySet<string> = new Set(['model', 'stream']);
/** Said in another way in the chat request, or of no use to an engine of one's own. */
const readHere: ReadonlySet<string> = new Set([
  ...Object.keys(schema.shape).filter((key) => !sameInChat.has(key)),
  'anthropic_beta',
  'anthropic_version',
  'betas',
  'billing_policy',
  'cache_control',
  'context_management',
  'diagnostics',
  'fallback_credit_token',
  'fallbacks',
  'inference_geo',
  'service_tier',
  'speed',
  'user_profile_id',
  'workspace_id',
]);

export function readMessages(body: unknown, messagesMax: number, wanted: 'answer' | 'count' = 'answer'): JsonObject {
  const given = isJsonObject(body) ? body['messages'] : undefined;
  // The system prompt is one message more.
  if (Array.isArray(given) && given.length >= messagesMax)
    throw gatewayErrors.invalidParameter({ param: 'messages', why: `it must hold fewer than ${messagesMax} messages` });
  const { value, fields } = readAs<Read>(wanted === 'count' ? counted : schema, body);
  if (value.thread != null) throw gatewayErrors.threadNotKept();
  if (wanted === 'answer' && value.messages.at(-1)?.['role'] === 'assistant')
    throw gatewayErrors.invalidParameter({
      param: 'messages',
      why: 'the last one must be what a person or a tool says: answers that a client began are not gone on with here',
    });
  // Clients write -1 where nothing is asked.
  const isAsked = (key: string, given: unknown) => !readHere.has(key) && !(key === 'top_p' && given === -1);
  const others = Object.fromEntries(Object.entries(fields).filter(([key, given]) => isAsked(key, given)));
  return { ...others, ...askedBy(value), messages: chatMessages(value.system, value.messages) };
}

function askedBy(asked: Read): JsonObject {
  const { max_tokens: tokens, stop_sequences: stop, tool_choice: choice, stream, metadata } = asked;
  const offered = offeredTools(asked);
  const wanted = asked.output_config?.format ?? asked.output_format;
  const effort = effortOf(asked.output_config?.effort);
  const user = personIn(metadata?.user_id ?? '');
  return {
    max_completion_tokens: tokens,
    // Who does not ask for thoughts does not expect them before the answer.
    thinking: { type: asked.thinking?.type ?? 'disabled' },
    ...(effort === undefined ? {} : { reasoning_effort: effort }),
    ...(stop == null || stop.length === 0 ? {} : { stop }),
    ...(offered.length === 0 ? {} : { tools: offered.map(chatTool) }),
    ...(choice == null || offered.length === 0 ? {} : chosen(choice)),
    ...(wanted == null
      ? {}
      : { response_format: { type: 'json_schema', json_schema: { name: 'answer', schema: wanted.schema } } }),
    ...(user === '' ? {} : { user }),
    ...(stream === true ? { stream_options: { include_usage: true } } : {}),
  };
}

/** Open models know three. */
function effortOf(asked: string | null | undefined): string | undefined {
  if (asked == null) return undefined;
  return asked === 'low' || asked === 'medium' ? asked : 'high';
}

/** Agents put a session's id behind who asks: a person is the same from one session to the next. */
function personIn(id: string): string {
  if (!id.startsWith('{')) return id.replace(/_session_[\w-]{1,128}$/, '');
  try {
    const read: unknown = JSON.parse(id);
    const { account_uuid: account, device_id: device } = isJsonObject(read) ? read : {};
    const known = [account, device].find((one) => typeof one === 'string' && one !== '');
    return typeof known === 'string' ? known : id;
  } catch {
    // Then it is a name like any other.
    return id;
  }
}

function chosen({ type, name, disable_parallel_tool_use: isSingle }: NonNullable<Read['tool_choice']>): JsonObject {
  const choice = type === 'tool' ? { type: 'function', function: { name } } : choices.get(type);
  return { tool_choice: choice, ...(isSingle === true ? { parallel_tool_calls: false } : {}) };
}

function chatTool({ name, description, input_schema: parameters }: JsonObject): JsonObject {
  const described = { name, description, parameters };
  const given = Object.entries(described).filter(([, value]) => value != null);
  return { type: 'function', function: Object.fromEntries(given) };
}

/** Those that are offered now: held back, brought in, taken away, in the order in which the conversation says so. */
function offeredTools({ tools, messages }: Read): JsonObject[] {
  const declared = new Map((tools ?? []).filter(isCustom).map((one) => [one['name'], one]));
  const offered = new Map([...declared].filter(([, one]) => one['defer_loading'] !== true));
  for (const block of messages.flatMap(({ content }) => blocksOf(content))) {
    const { type, tool: changed } = block;
    if (type === 'tool_removal' && isJsonObject(changed)) offered.delete(changed['name']);
    const added = type === 'tool_addition' && isJsonObject(changed) ? [changed] : referencesIn(block);
    for (const one of added) {
      const definition = isJsonObject(one['definition']) ? one['definition'] : declared.get(one['name']);
      if (definition !== undefined && isCustom(definition) && typeof definition['name'] === 'string')
        offered.set(definition['name'], definition);
    }
  }
  return [...offered.values()];
}

/** A client's own search for tools says by reference which it found. */
function referencesIn({ type, content }: JsonObject): JsonObject[] {
  if (type !== 'tool_result') return [];
  return blocksOf(content)
    .filter((block) => block['type'] === 'tool_reference')
    .map(({ tool_name: name }) => ({ name }));
}
