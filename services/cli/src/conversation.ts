// The messages of a stored turn, whole.
import { decodeConversation, type DecodedConversation, type FactReader } from '@backtalk/kit';
import type { TurnOpened } from '@backtalk/proto/facts';
import { cliErrors } from './errors.js';

export async function conversationOf(
  reader: FactReader,
  { conversation, tenant, user }: TurnOpened,
): Promise<DecodedConversation> {
  if (conversation === undefined) return { messages: [], tools: [] };
  return decodeConversation(conversation, async (turn) => {
    const base = await reader.last('turnOpened', { tenant, user, turn });
    if (base?.message.conversation === undefined) throw cliErrors.nothingFound({ what: `turn ${turn} in the log` });
    return base.message.conversation;
  });
}

/** What the person said last in a request. */
export function lastUserText(messages: readonly unknown[]): string {
  const last = messages.findLast((message) => fieldOf(message, 'role') === 'user');
  const content = fieldOf(last, 'content');
  return typeof content === 'string' ? content : JSON.stringify(content ?? '');
}

function fieldOf(value: unknown, name: string): unknown {
  return typeof value === 'object' && value !== null ? Reflect.get(value, name) : undefined;
}
