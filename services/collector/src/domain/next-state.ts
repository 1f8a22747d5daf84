// What happened after an answer: every message behind it in the request that continued it, each with where it came from.
// In: the continuing request's messages, the position of the answer, the texts that stood in the request before.
// Out: next-state messages in order, of bounded length. It never invents text and never reads meaning.
import { clip, isObservation, nextStateBounds, personWords } from '@backtalk/kit';
import { Provenance, type NextStateMessage } from '@backtalk/proto/facts';
import type { ChatMessage } from './messages.js';

function provenanceOf(message: ChatMessage, text: string, turnType: string, earlier: ReadonlySet<string>): Provenance {
  if (message.role === 'tool' || message.role === 'function') return Provenance.PROVENANCE_TOOL;
  if (message.role !== 'user') return Provenance.PROVENANCE_CLIENT;
  if (personWords(text) === '') return Provenance.PROVENANCE_CLIENT;
  const trimmed = text.trim();
  // A person seldom says the same paragraph twice; a client does at every turn.
  if (trimmed.length > 80 && earlier.has(trimmed)) return Provenance.PROVENANCE_CLIENT;
  return turnType === 'environment' || isObservation(text)
    ? Provenance.PROVENANCE_ENVIRONMENT
    : Provenance.PROVENANCE_USER;
}

/** @param answerIndex of the answer among the assistant messages */
export function nextStateOf(
  messages: readonly ChatMessage[],
  answerIndex: number,
  turnType: string,
  earlierTexts: ReadonlySet<string>,
): NextStateMessage[] {
  const answer = messages.filter(({ role }) => role === 'assistant')[answerIndex];
  if (answer === undefined) return [];
  const toolNames = new Map(answer.toolCalls.map(({ id, name }) => [id, name]));
  const said = untilAnswered(messages.slice(messages.indexOf(answer) + 1))
    .flatMap((message) =>
      (message.isError && message.texts.length === 0 ? [''] : message.texts).map((text) => {
        const provenance = provenanceOf(message, text, turnType, earlierTexts);
        return {
          provenance,
          text: provenance === Provenance.PROVENANCE_USER ? personWords(text) : text,
          toolCallId: message.toolCallId,
          toolName: message.toolName === '' ? (toolNames.get(message.toolCallId) ?? '') : message.toolName,
          isError: message.isError && provenance === Provenance.PROVENANCE_TOOL,
        };
      }),
    )
    .filter((entry) => entry.text !== '' || entry.isError);
  return bounded(said);
}

/** What was said before anything else was answered: what follows another answer is about that. */
function untilAnswered(after: readonly ChatMessage[]): readonly ChatMessage[] {
  const isAnswer = ({ role }: ChatMessage) => role === 'assistant';
  const first = after.findIndex((message) => !isAnswer(message));
  const next = after.findIndex((message, at) => at > first && isAnswer(message));
  return first < 0 ? [] : after.slice(first, next < 0 ? undefined : next);
}

const nameCharactersMax = 128;

/**
 * Each message stays, since readers count them: many share what there is for all. A name that an answer gave once comes
 * again with each part of a tool's result.
 */
function bounded(said: readonly NextStateMessage[]): NextStateMessage[] {
  const evenly = (charactersMax: number, each: number) => Math.min(each, Math.floor(charactersMax / said.length));
  const textMax = evenly(nextStateBounds.textsCharactersMax, nextStateBounds.textCharactersMax);
  const nameMax = evenly(nextStateBounds.namesCharactersMax / 2, nameCharactersMax);
  let jsonBytesLeft = nextStateBounds.jsonBytesMax;
  return said.map(({ provenance, text, toolCallId, toolName, isError }) => {
    const rest = { toolCallId: toolCallId.slice(0, nameMax), toolName: toolName.slice(0, nameMax), isError };
    if (text.length <= textMax) return { provenance, text, ...rest };
    const bytes = mayHaveFields(provenance, text) ? Buffer.byteLength(text) : Infinity;
    if (bytes > jsonBytesLeft) return { provenance, text: cut(text, textMax), ...rest };
    jsonBytesLeft -= bytes;
    return { provenance, text, ...rest };
  });
}

/** A person's words are read as words, whatever they look like. */
function mayHaveFields(provenance: Provenance, text: string): boolean {
  const isMachines = provenance === Provenance.PROVENANCE_TOOL || provenance === Provenance.PROVENANCE_ENVIRONMENT;
  return isMachines && text.trimStart().startsWith('{');
}

/** Head and tail of an object could be one, without the field between that says how it went. */
function cut(text: string, charactersMax: number): string {
  const clipped = clip(text.trim(), charactersMax);
  return clipped.replace(/^[{\s]+/, '');
}

/** True when a user, a tool or an environment answered: context that a client added by itself is no next state. */
export function saysSomething(nextState: readonly NextStateMessage[]): boolean {
  return nextState.some(({ provenance }) => provenance !== Provenance.PROVENANCE_CLIENT);
}

/** Every text of a request, to recognise what a client repeats from turn to turn. */
export function textsOf(messages: readonly ChatMessage[]): Set<string> {
  return new Set(
    messages.filter(({ role }) => role !== 'assistant').flatMap(({ texts }) => texts.map((text) => text.trim())),
  );
}
