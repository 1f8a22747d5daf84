// The messages of a stored turn, whole.
import { isJsonObject, type DecodedConversation, type TurnLog } from '@backtalk/kit';
import type { TurnOpened } from '@backtalk/proto/facts';
import { cliErrors } from './errors.js';

export async function conversationOf(log: TurnLog, opened: TurnOpened): Promise<DecodedConversation> {
  if (opened.conversation === undefined) return { messages: [], tools: [], templateArguments: {} };
  return log.conversation(opened, (turn) => cliErrors.nothingFound({ what: `turn ${turn} in the log` }));
}

/** What the person said last in a request. */
export function lastUserText(messages: readonly unknown[]): string {
  const last = messages.findLast((message) => isJsonObject(message) && message['role'] === 'user');
  const content = isJsonObject(last) ? last['content'] : undefined;
  return typeof content === 'string' ? content : JSON.stringify(content ?? '');
}
