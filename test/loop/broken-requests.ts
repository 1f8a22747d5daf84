// Ways in which a request that is kept could come to differ from the one that was answered, to show that a comparison of prompts would
// tell. In: a request. Out: the same, broken in one way. Pure.
import { isJsonObject } from '@backtalk/kit';

export interface KeptRequest {
  readonly messages: readonly unknown[];
  readonly tools: readonly unknown[];
  readonly chat_template_kwargs: Readonly<Record<string, unknown>>;
}

type Fields = Readonly<Record<string, unknown>>;

export const breakings = {
  'arguments written anew': (kept) => ({ ...kept, messages: kept.messages.map(each(withCalls(rewritten))) }),
  'tools without a description': (kept) => ({ ...kept, tools: kept.tools.map(each(withFunction(undescribed))) }),
  'thoughts left out': (kept) => ({ ...kept, messages: kept.messages.map(each(thoughtless)) }),
  'the system message merged into the next': merged,
  'a message left out': ({ messages, ...rest }) => ({ ...rest, messages: messages.slice(1) }),
  'template arguments left out': (kept) => ({ ...kept, chat_template_kwargs: {} }),
} satisfies Readonly<Record<string, (kept: KeptRequest) => KeptRequest>>;
export type Breaking = keyof typeof breakings;

function each(change: (one: Fields) => Fields) {
  return (one: unknown): unknown => (isJsonObject(one) ? change(one) : one);
}

function withFunction(change: (one: Fields) => Fields) {
  return (one: Fields): Fields => ({ ...one, function: each(change)(one['function']) });
}

function withCalls(change: (one: Fields) => Fields) {
  return (message: Fields): Fields => {
    const calls: unknown = message['tool_calls'];
    return Array.isArray(calls) ? { ...message, tool_calls: calls.map(each(withFunction(change))) } : message;
  };
}

function rewritten(called: Fields): Fields {
  try {
    return { ...called, arguments: JSON.stringify(JSON.parse(String(called['arguments']))) };
  } catch {
    // No JSON has one way of writing only.
    return called;
  }
}

function undescribed(offered: Fields): Fields {
  return Object.fromEntries(Object.entries(offered).filter(([name]) => name !== 'description'));
}

function thoughtless(message: Fields): Fields {
  return Object.fromEntries(Object.entries(message).filter(([name]) => !name.startsWith('reasoning')));
}

function merged({ messages, ...rest }: KeptRequest): KeptRequest {
  const [system, next, ...others] = messages;
  const isSystem = isJsonObject(system) && system['role'] === 'system' && isJsonObject(next);
  if (!isSystem) return { ...rest, messages };
  const texts = [system['content'], next['content']].map((text) =>
    typeof text === 'string' ? text : JSON.stringify(text),
  );
  return { ...rest, messages: [{ ...next, content: texts.join('\n') }, ...others] };
}
