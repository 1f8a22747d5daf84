// Which fields of a chat request may a caller set, and which of them does an engine get?
//
// In: the name of a field, and an engine's dialect. Out: whether it is passed on, dropped, or refused. A field that stands
// in no list is refused: engines take many more, and some of them load files, fetch addresses, run code of the caller's,
// or let one caller's request meet another's.
import type { EngineDialect } from './create-engine-client.js';

/** OpenAI's own, which every engine gets. */
const standardFields = [
  'messages',
  'model',
  'temperature',
  'top_p',
  'n',
  'stop',
  'seed',
  'max_tokens',
  'max_completion_tokens',
  'presence_penalty',
  'frequency_penalty',
  'logit_bias',
  'logprobs',
  'top_logprobs',
  'response_format',
  'tools',
  'tool_choice',
  'parallel_tool_calls',
  'reasoning_effort',
  'stream',
  'stream_options',
] as const;

/**
 * Known, and of no use to an engine of one's own: what OpenAI's service and others do with a request beside answering
 * it, and names by which two callers could collide in an engine.
 */
const droppedFields = [
  'user',
  'metadata',
  'store',
  'service_tier',
  'safety_identifier',
  'prompt_cache_key',
  'prompt_cache_retention',
  'prediction',
  // Text alone is let in.
  'modalities',
  'verbosity',
  // Written as `chat_template_kwargs`, where engines have thoughts to switch.
  'thinking',
  'enable_thinking',
  'reasoning',
  'request_id',
  'cache_salt',
  'priority',
  // Every engine that can is asked for ids anyway.
  'return_token_ids',
] as const;

/** What the plain sampler is made of is sent to every engine. */
const samplerFields = ['top_k', 'min_p'] as const;

const commonExtras = [
  'repetition_penalty',
  'min_tokens',
  'stop_token_ids',
  'ignore_eos',
  'skip_special_tokens',
  'continue_final_message',
  'chat_template_kwargs',
] as const;

const builtinExtras = [
  ...commonExtras,
  'include_stop_str_in_output',
  'add_generation_prompt',
  'truncate_prompt_tokens',
  'allowed_token_ids',
  'bad_words',
  'structured_outputs',
] as const;

const extras: Readonly<Record<EngineDialect, readonly string[]>> = {
  builtin: builtinExtras,
  vllm: [
    ...builtinExtras,
    'spaces_between_special_tokens',
    'include_reasoning',
    'thinking_token_budget',
    'guided_json',
    'guided_choice',
  ],
  sglang: [...commonExtras, 'no_stop_trim', 'separate_reasoning', 'stream_reasoning'],
  // OpenAI's former names of `tools` and `tool_choice`, which the others ignore.
  openai: ['functions', 'function_call'],
};

const dropped: ReadonlySet<string> = new Set(droppedFields);
const passed = new Map(
  Object.entries(extras).map(([dialect, own]) => [
    dialect,
    new Set<string>([...standardFields, ...samplerFields, ...own]),
  ]),
);
const known = new Set<string>([...dropped, ...[...passed.values()].flatMap((fields) => [...fields])]);

/** Whether an engine of any dialect takes it, or it is known and dropped. */
export function isChatField(field: string): boolean {
  return known.has(field);
}

export function fateOfChatField(field: string, dialect: EngineDialect): 'passed' | 'dropped' | 'refused' {
  if (passed.get(dialect)?.has(field) === true) return 'passed';
  return dropped.has(field) ? 'dropped' : 'refused';
}
