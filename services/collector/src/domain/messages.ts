// What the collector reads in an OpenAI chat request, from JSON of unknown shape.
import { clip, isJsonObject, personWords } from '@backtalk/kit';

export interface ChatMessage {
  readonly role: string;
  /** One text a content part; images and other parts are left out. */
  readonly texts: readonly string[];
  readonly toolCallId: string;
  readonly toolName: string;
  /** The client says of a tool's result that it is an error. */
  readonly isError: boolean;
  /** Ids and names of the tools that an assistant message calls. */
  readonly toolCalls: readonly { readonly id: string; readonly name: string }[];
}

function text(value: unknown): string {
  return typeof value === 'string' ? value : '';
}

export function readMessages(messages: readonly unknown[]): ChatMessage[] {
  return messages.filter(isJsonObject).map((message) => {
    const content = message['content'];
    const parts = Array.isArray(content) ? content.filter(isJsonObject) : [];
    const partTexts = parts.flatMap((part) => (typeof part['text'] === 'string' ? [part['text']] : []));
    const calls = message['tool_calls'];
    const toolCalls = (Array.isArray(calls) ? calls : []).filter(isJsonObject).map((call) => {
      const called = isJsonObject(call['function']) ? call['function'] : {};
      return { id: text(call['id']), name: text(called['name']) };
    });
    return {
      role: text(message['role']),
      texts: typeof content === 'string' ? [content] : partTexts,
      toolCallId: text(message['tool_call_id']),
      toolName: text(message['name']),
      isError: message['is_error'] === true,
      toolCalls,
    };
  });
}

/** The last text that a person had a part in, as it was sent. */
export function lastWordsOf(messages: readonly ChatMessage[]): string | undefined {
  return messages
    .filter(({ role }) => role === 'user')
    .flatMap(({ texts }) => texts)
    .findLast((text) => personWords(text) !== '')
    ?.trim();
}

const sideTypes: ReadonlySet<string> = new Set(['side', 'title', 'heartbeat', 'memory', 'auxiliary']);

/** What a client asks for itself stands at the head or at the end. */
const askedCharactersMax = 8_192;

const sidePatterns: readonly RegExp[] = [
  /\b(?:generate|create|write|suggest)\b[^.\n]{1,40}\b(?:concise |short |brief ){0,3}title\b[^.\n]{1,60}\b(?:conversation|chat|session|discussion)\b(?!\s+(?:app|bot|button|feature|page|room|section|widget|window)\b)/i,
  /^\s*read heartbeat\.md\b/i,
  /^\s*pre-compaction memory flush\b/i,
  /\bsummari[sz]e (?:the|this|our) (?:conversation|chat) (?:so far|history)\b/i,
  // Histories that grow too long are replaced by what is answered to such a request.
  /^\s*(?:please )?(?:create|write|give|provide|extend|update) (?:a |the )(?:detailed |concise |brief )?summary\b[^.\n]{1,60}\b(?:conversation (?:above|so far|history)|(?:new )?messages above)/i,
  /^\s*your task is to create a (?:detailed |concise )?summary of (?:the|our|this) conversation\b/i,
  // Claude Code: /compact, what might be asked next, a recap, what an agent of its own is at.
  /^\s*critical: respond with text only\b/i,
  /^\s*\[suggestion mode:/i,
  /^\s*the user stepped away and is coming back\b/i,
  /^\s*describe your most recent action in \d/i,
  // Codex: /compact.
  /^\s*you are performing a context checkpoint compaction\b/i,
  /^\s*provide a detailed prompt for continuing our conversation above\b/i,
];

/** Whether a client made the request for itself. A header decides if there is one; otherwise known patterns do. */
export function isSideRequest(declaredType: string, messages: readonly ChatMessage[]): boolean {
  if (declaredType !== '') return sideTypes.has(declaredType.toLowerCase());
  const lastUser = messages.findLast(({ role }) => role === 'user');
  const read = lastUser?.texts.map((text) => clip(text, askedCharactersMax)) ?? [];
  return read.some((text) => sidePatterns.some((pattern) => pattern.test(text)));
}
