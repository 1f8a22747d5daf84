// The messages of a stored turn, whole.
import { isJsonObject, lastHumanMessage, wordsIn, type DecodedConversation, type TurnLog } from '@backtalk/kit';
import type { TurnOpened } from '@backtalk/proto/facts';
import { cliErrors } from './errors.js';

/** Undefined where the log holds it no more: a turn has what it adds to an earlier one, which goes first. */
export async function conversationOf(log: TurnLog, opened: TurnOpened): Promise<DecodedConversation | undefined> {
  if (opened.conversation === undefined) return { messages: [], tools: [], templateArguments: {} };
  const gone = cliErrors.nothingFound({ what: 'beginning of this conversation in the log' });
  try {
    return await log.conversation(opened, () => gone);
  } catch (error) {
    if (error === gone) return undefined;
    throw error;
  }
}

/** What the person said last in a request; where none did, its last message in the role of a user. */
export function lastUserText(messages: readonly unknown[]): string {
  const isUsers = (message: unknown) => isJsonObject(message) && message['role'] === 'user';
  const last = messages[lastHumanMessage(messages)] ?? messages.findLast(isUsers);
  const content = isJsonObject(last) ? last['content'] : undefined;
  const words = wordsIn(content);
  if (words !== '') return words;
  return typeof content === 'string' ? content : JSON.stringify(content ?? '');
}
