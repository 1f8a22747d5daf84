// Simulated sessions through the endpoint, as any client would hold them: no special headers. It never looks into the system.
import type OpenAI from 'openai';
import { versionParts } from '@backtalk/kit';
import type { ChatMessage } from '@backtalk/cli';
import { ask } from './ask.js';
import type { SeenAnswer } from './user/rule.js';
import type { Reaction } from './user/simulated-user.js';

/** Who talks; one of them holds several sessions at once. */
export interface Talker {
  question(): string;
  /** @param before what was said until this answer, the question first */
  react(question: string, answer: SeenAnswer, before: readonly ChatMessage[]): Promise<Reaction>;
}

export interface TalkCounts {
  sessions: number;
  answers: number;
  corrected: number;
  praised: number;
  left: number;
  complained: number;
  /** Newest version that answered. */
  version: string;
}

export interface TalkOptions {
  readonly client: OpenAI;
  readonly model: string;
  readonly user: Talker;
  readonly maxTokens: number;
  readonly repliesMax: number;
  /** Of the answer to the last reply, which nobody reads; as long as the others where it is left out. */
  readonly lastTokensMax?: number;
  /** The endpoint's own where it is left out. */
  readonly temperature?: number;
  /** Ends the session in the middle of an answer. */
  readonly signal?: AbortSignal;
}

export function emptyCounts(version: string): TalkCounts {
  return { sessions: 0, answers: 0, corrected: 0, praised: 0, left: 0, complained: 0, version };
}

function count(counts: TalkCounts, reaction: Reaction): void {
  switch (reaction.kind) {
    case 'correct':
      counts.corrected += 1;
      break;
    case 'complain':
      counts.complained += 1;
      break;
    case 'praise':
    case 'follow-up':
      counts.praised += 1;
      break;
    case 'leave':
      counts.left += 1;
      break;
  }
}

/** One session: a question, the answer, and at most `repliesMax` replies to answers, the last of them where they are content. */
export async function talkOnce(options: TalkOptions, counts: TalkCounts): Promise<void> {
  const { client, model, user, maxTokens, repliesMax, lastTokensMax = maxTokens, temperature, signal } = options;
  const sampled = temperature === undefined ? {} : { temperature };
  const asked = user.question();
  const messages: ChatMessage[] = [{ role: 'user', content: asked }];
  let isContent = false;
  for (let replies = 0; ; replies += 1) {
    // What is answered to thanks is read by no one: only the thanks count.
    const isLast = replies >= repliesMax || isContent;
    const tokens = isLast ? lastTokensMax : maxTokens;
    const answer = await ask(client, messages, { model, maxTokens: tokens, train: true, signal, ...sampled });
    counts.answers += 1;
    if (replies === 0 && numberOf(answer.version) > numberOf(counts.version)) counts.version = answer.version;
    if (isLast) break;
    const reaction = await user.react(asked, answer, messages);
    count(counts, reaction);
    if (reaction.kind === 'leave') break;
    isContent = reaction.kind === 'praise';
    messages.push({ role: 'assistant', content: answer.text }, { role: 'user', content: reaction.words });
  }
  counts.sessions += 1;
}

/** The number in a version's name; 0 where there is none. */
export function numberOf(version: string): number {
  return versionParts(version)?.number ?? 0;
}
