// Puts together what a judgement is about. In: the messages of a request, the answer to it, its next state. Out: the
// material, or nothing where the next state is empty and nothing was done. Pure.
import { isJsonObject, lastHumanMessage, wordsIn } from '@backtalk/kit';
import { Provenance, type TurnCompleted, type TurnContinued, type TurnOpened } from '@backtalk/proto/facts';
import type { Material, Message } from './material.js';
import { readNextState, type NextState } from './next-state.js';

export function readMaterial(
  messages: readonly unknown[],
  completed: Pick<TurnCompleted, 'text' | 'reasoning' | 'toolCalls' | 'weightsVersion' | 'finishReason'>,
  continued: TurnContinued,
): Material | undefined {
  const isRegenerated = continued.act === 'regenerated';
  const next = nextStateOf(continued);
  if (next === undefined) return undefined;
  const { turn, tenant, user, policy, session } = continued;
  const conversation = messages.flatMap((message): Message[] => {
    if (!isJsonObject(message)) return [];
    const role = message['role'];
    const text = textOf(message['content']);
    return typeof role === 'string' && text !== '' ? [{ role, text }] : [];
  });
  return {
    place: { turn, tenant, user, policy, session },
    conversation,
    ...askedIn(messages, completed),
    thoughts: completed.reasoning,
    version: completed.weightsVersion,
    next,
    ...(isRegenerated ? { act: 'regenerated' as const } : {}),
    ...endingOf(completed.finishReason),
  };
}

/** Whether a turn begins a conversation by a person's own words. An answer that was made again begins nothing: the one in its place does. */
export function beginsConversation(
  { answerKeys, group, declaredTurnType }: TurnOpened,
  { act }: Pick<TurnContinued, 'act'>,
): boolean {
  return answerKeys.length === 0 && group === '' && declaredTurnType !== 'environment' && act === '';
}

/** What words about an answer are read beside. */
export function askedIn(
  messages: readonly unknown[],
  { text, toolCalls }: Pick<TurnCompleted, 'text' | 'toolCalls'>,
): Pick<Material, 'question' | 'answer'> {
  // Tool calls are a part of the answer.
  const calls = toolCalls.length === 0 ? '' : `[calls ${Buffer.from(toolCalls).toString('utf8')}]`;
  return { question: questionIn(messages), answer: [text, calls].filter((part) => part !== '').join('\n') };
}

/** A comment is read as if it had been the next message. */
export function saidInComment(text: string): NextState | undefined {
  return readNextState([
    { text, provenance: Provenance.PROVENANCE_USER, toolName: '', toolCallId: '', isError: false },
  ]);
}

/** An answer that was asked for again has no words after it. */
export function nextStateOf({ act, nextState }: TurnContinued): NextState | undefined {
  return act === 'regenerated' ? nothingSaid : readNextState(nextState);
}

function endingOf(finishReason: string): Pick<Material, 'ending'> {
  if (finishReason === 'abort') return { ending: 'stopped' };
  return finishReason === 'error' ? { ending: 'failed' } : {};
}

const nothingSaid: NextState = { role: 'user', text: '', userText: '', toolResults: [] };

/** Agents put context of their own behind it. */
function questionIn(messages: readonly unknown[]): string {
  const message = messages[lastHumanMessage(messages)];
  return isJsonObject(message) ? wordsIn(message['content']) : '';
}

/** Content is a text, or parts of which some have one. */
function textOf(content: unknown): string {
  if (typeof content === 'string') return content;
  if (!Array.isArray(content)) return '';
  const texts = content.map((part: unknown) => (isJsonObject(part) ? part['text'] : undefined));
  return texts.filter((text) => typeof text === 'string').join('\n');
}
