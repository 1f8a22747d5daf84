// The parts of an OpenAI chat message that the collector reads, from JSON of unknown shape.

export interface ChatMessage {
  readonly role: string;
  /** One text a content part; images and other parts are left out. */
  readonly texts: readonly string[];
  readonly toolCallId: string;
  readonly toolName: string;
  /** Ids and names of the tools that an assistant message calls. */
  readonly toolCalls: readonly { readonly id: string; readonly name: string }[];
}

function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function text(value: unknown): string {
  return typeof value === 'string' ? value : '';
}

function textsOf(content: unknown): string[] {
  if (typeof content === 'string') return [content];
  if (!Array.isArray(content)) return [];
  return content.filter(isRecord).flatMap((part) => (typeof part['text'] === 'string' ? [part['text']] : []));
}

function toolCallsOf(value: unknown): { id: string; name: string }[] {
  if (!Array.isArray(value)) return [];
  return value.filter(isRecord).map((call) => {
    const called = isRecord(call['function']) ? call['function'] : {};
    return { id: text(call['id']), name: text(called['name']) };
  });
}

export function readMessages(messages: readonly unknown[]): ChatMessage[] {
  return messages.filter(isRecord).map((message) => ({
    role: text(message['role']),
    texts: textsOf(message['content']),
    toolCallId: text(message['tool_call_id']),
    toolName: text(message['name']),
    toolCalls: toolCallsOf(message['tool_calls']),
  }));
}

/** What the user said last. */
export function lastWordsOf(messages: readonly ChatMessage[]): string | undefined {
  return messages
    .findLast(({ role }) => role === 'user')
    ?.texts.at(-1)
    ?.trim();
}
