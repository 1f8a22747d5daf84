// What happened after an answer: every message behind it in the request that continued it, each with where it came from.
// In: the continuing request's messages, the place of the answer, the texts that stood in the request before.
// Out: next-state messages in order. It never invents text and never reads meaning.
import { Provenance, type NextStateMessage } from '@backtalk/proto/facts';
import { isClientContext, withoutClientBlocks } from './client-context.js';
import type { ChatMessage } from './messages.js';

const environmentTurn = 'environment';

function provenanceOf(message: ChatMessage, text: string, turnType: string, earlier: ReadonlySet<string>): Provenance {
  if (message.role === 'tool' || message.role === 'function') return Provenance.PROVENANCE_TOOL;
  if (message.role !== 'user') return Provenance.PROVENANCE_CLIENT;
  if (isClientContext(text, earlier)) return Provenance.PROVENANCE_CLIENT;
  return turnType === environmentTurn ? Provenance.PROVENANCE_ENVIRONMENT : Provenance.PROVENANCE_USER;
}

function entriesOf(
  message: ChatMessage,
  toolNames: ReadonlyMap<string, string>,
  turnType: string,
  earlier: ReadonlySet<string>,
): NextStateMessage[] {
  return message.texts.map((text) => {
    const provenance = provenanceOf(message, text, turnType, earlier);
    return {
      provenance,
      text: provenance === Provenance.PROVENANCE_USER ? withoutClientBlocks(text) : text,
      toolCallId: message.toolCallId,
      toolName: message.toolName === '' ? (toolNames.get(message.toolCallId) ?? '') : message.toolName,
    };
  });
}

/** Position in `messages` of the assistant message with the given index among assistant messages; -1 when there is none. */
function positionOfAnswer(messages: readonly ChatMessage[], answerIndex: number): number {
  let seen = -1;
  return messages.findIndex((message) => {
    if (message.role === 'assistant') seen += 1;
    return message.role === 'assistant' && seen === answerIndex;
  });
}

export function nextStateOf(
  messages: readonly ChatMessage[],
  answerIndex: number,
  turnType: string,
  earlierTexts: ReadonlySet<string>,
): NextStateMessage[] {
  const position = positionOfAnswer(messages, answerIndex);
  if (position < 0) return [];
  const toolNames = new Map(messages[position]?.toolCalls.map(({ id, name }) => [id, name]) ?? []);
  return messages
    .slice(position + 1)
    .filter((message) => message.role !== 'assistant')
    .flatMap((message) => entriesOf(message, toolNames, turnType, earlierTexts))
    .filter((entry) => entry.text !== '');
}

/** Somebody or something answered: context that a client added by itself is no next state. */
export function saysSomething(nextState: readonly NextStateMessage[]): boolean {
  return nextState.some(({ provenance }) => provenance !== Provenance.PROVENANCE_CLIENT);
}

/** Every text of a request, to recognise what a client repeats from turn to turn. */
export function textsOf(messages: readonly ChatMessage[]): Set<string> {
  return new Set(
    messages.filter(({ role }) => role !== 'assistant').flatMap(({ texts }) => texts.map((text) => text.trim())),
  );
}
