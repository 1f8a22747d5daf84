// Who speaks in a next state. In: its messages with where each came from. Out: the role that decides, and that role's
// text. Context that a client adds by itself is left out.
import { personWords } from '@backtalk/kit';
import { Provenance, type NextStateMessage } from '@backtalk/proto/facts';
import { reasonsIn } from './refusals.js';
import { saidWords } from './said-words.js';

export const roles = ['user', 'tool', 'environment'] as const;
export type Role = (typeof roles)[number];

export interface ToolResult {
  readonly name: string;
  readonly text: string;
  /** Its client says that it is an error. */
  readonly isError: boolean;
}

export interface NextState {
  /** A person's words outrank what tools say, because the person has seen it. */
  readonly role: Role;
  /** Of the role that decides, its messages one after the other. */
  readonly text: string;
  /** What a person said, without what others wrote; empty when only tools spoke. */
  readonly userText: string;
  readonly toolResults: readonly ToolResult[];
  /** Why they refused a call, where only their agent tells it. A tool could print the same, so it is about this turn alone. */
  readonly reason?: string;
}

/** Nothing where neither a person nor a machine said anything. */
export function readNextState(messages: readonly NextStateMessage[]): NextState | undefined {
  const machines: readonly Provenance[] = [Provenance.PROVENANCE_TOOL, Provenance.PROVENANCE_ENVIRONMENT];
  const words = messages
    .filter(({ provenance }) => provenance === Provenance.PROVENANCE_USER)
    .map(({ text }) => personWords(text));
  const byUser = joined(words);
  const userText = joined(words.map((text) => saidWords(text)));
  const toolText = textOf(messages, Provenance.PROVENANCE_TOOL);
  const environmentText = textOf(messages, Provenance.PROVENANCE_ENVIRONMENT);
  const toolResults = messages
    .filter(({ provenance }) => machines.includes(provenance))
    .map(({ toolName, text, isError }) => ({ name: toolName, text, isError }));
  const rest = { userText, toolResults };
  if (byUser !== '') return { role: 'user', text: byUser, ...rest };
  if (messages.some(({ provenance }) => provenance === Provenance.PROVENANCE_TOOL)) {
    const reason = saidWords(reasonsIn(toolResults));
    return { role: 'tool', text: toolText, ...rest, ...(reason === '' ? {} : { reason }) };
  }
  return environmentText === '' ? undefined : { role: 'environment', text: environmentText, ...rest };
}

function textOf(messages: readonly NextStateMessage[], wanted: Provenance): string {
  return joined(messages.filter(({ provenance }) => provenance === wanted).map(({ text }) => text));
}

function joined(texts: readonly string[]): string {
  return texts
    .map((text) => text.trim())
    .filter((text) => text !== '')
    .join('\n\n');
}
