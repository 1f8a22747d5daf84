// Which message of a request did a person write last?
// In: the request's messages, and the next state of the turn before it, which says where each new message came from.
// Out: an index in the messages, or -1 when nothing is known: then the last user message counts. Never reads the words.
import { Provenance, type TurnContinued } from '@backtalk/proto/facts';

export const lastUserMessage = -1;

export function humanMessage(messages: readonly unknown[], before: TurnContinued | undefined): number {
  if (before === undefined) return lastUserMessage;
  const { nextState } = before;
  const spoken = nextState.findLastIndex(({ provenance }) => provenance === Provenance.PROVENANCE_USER);
  const index = messages.length - nextState.length + spoken;
  return spoken >= 0 && isUserMessage(messages[index]) ? index : lastUserMessage;
}

function isUserMessage(message: unknown): boolean {
  return typeof message === 'object' && message !== null && 'role' in message && message.role === 'user';
}
