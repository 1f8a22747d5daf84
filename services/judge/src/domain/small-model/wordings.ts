// The prompts of a scored vote, for models too small to follow instructions. In: labelled examples. Out: for each
// wording and each verdict, the beginning of a list of replies that got that verdict. A vote asks how likely the next
// state is as the next entry of each list: the model never reads an instruction, so there is none to break. Examples
// come first and never change, so that an engine computes each list once. Pure.
import { z } from 'zod';
import { clip, oneLine } from '@backtalk/kit';
import type { NextState, Role } from '../next-state.js';
import { withoutAddressed } from '../addressed.js';
import { ownWords } from '../own-words.js';
import { labelOf, type Label } from '../verdict.js';

export const example = z.object({
  role: z.enum(['user', 'tool']),
  label: z.union([z.literal(-1), z.literal(0), z.literal(1)]),
  next: z.string(),
});
/** A next state of which a person has said what it means. */
export type Example = z.infer<typeof example>;

export interface Wording {
  /** Names it in calibrations. */
  readonly id: string;
  /** By verdict. */
  readonly lists: Readonly<Record<Label, string>>;
}

/** Enough to tell what a reply is about; the rest is mostly pasted text. */
const replyCharactersMax = 320;
/** Each wording leaves out every third example, another one each, so that votes are not copies of each other. */
const leftOutOf = 3;

interface Headings {
  readonly id: string;
  /** Which examples it leaves out, and in which order the others stand. */
  readonly variant: number;
  readonly headings: Readonly<Record<Label, string>>;
}

/** Those that judged best on the labelled set stand first: few votes use them alone. */
const userHeadings: readonly Headings[] = [
  {
    id: 'user-after',
    variant: 0,
    headings: {
      satisfied: 'What happy users say after a good answer:',
      unrelated: 'What users say that has nothing to do with the answer:',
      correction: 'What unhappy users say after a bad answer:',
    },
  },
  {
    id: 'user-customer',
    variant: 3,
    headings: {
      satisfied: 'Replies of a satisfied customer:',
      unrelated: 'Replies that say nothing about the service:',
      correction: 'Complaints and corrections of a customer:',
    },
  },
  {
    id: 'user-person',
    variant: 1,
    headings: {
      satisfied: 'The answer was right. The person says thanks or asks the next thing:',
      unrelated: 'The person is distracted or undecided and says:',
      correction: 'The answer was wrong or not as wanted. The person says:',
    },
  },
  {
    id: 'user-bare',
    variant: 2,
    headings: { satisfied: 'Satisfied:', unrelated: 'Unrelated:', correction: 'Correction:' },
  },
  {
    id: 'user-wants',
    variant: 4,
    headings: {
      satisfied: 'Messages from people who got what they wanted and go on:',
      unrelated: 'Messages from people who are busy with other things:',
      correction: 'Messages from people who want the answer to be changed:',
    },
  },
];

const toolHeadings: readonly Headings[] = [
  {
    id: 'tool-prints',
    variant: 0,
    headings: {
      satisfied: 'What a tool prints when the call was a success:',
      unrelated: 'What a tool prints when there is nothing to say yet:',
      correction: 'What a tool prints when the call has failed:',
    },
  },
  {
    id: 'tool-results',
    variant: 1,
    headings: {
      satisfied: 'Results of calls that worked:',
      unrelated: 'Results of calls that are waiting or empty:',
      correction: 'Results of calls that went wrong:',
    },
  },
  {
    id: 'tool-messages',
    variant: 2,
    headings: { satisfied: 'Success messages:', unrelated: 'Status messages:', correction: 'Error messages:' },
  },
];

export interface Wordings {
  readonly user: readonly Wording[];
  /** Also for environments, whose observations read like a tool's. */
  readonly tool: readonly Wording[];
}

export function wordingsFrom(examples: readonly Example[]): Wordings {
  return { user: wordingsOf('user', userHeadings, examples), tool: wordingsOf('tool', toolHeadings, examples) };
}

export function wordingFor(wordings: Wordings, role: Role, vote: number): Wording | undefined {
  const list = role === 'user' ? wordings.user : wordings.tool;
  return list[vote % list.length];
}

/** What of a next state is put into the lists: of a person's message, the words that are their own and are not said to a judge. */
export function saidIn({ role, text }: Pick<NextState, 'role' | 'text'>): string {
  if (role !== 'user') return text;
  const own = ownWords(text) || text;
  return withoutAddressed(own) || own;
}

/** How a next state stands in a list. */
export function entryOf(text: string): string {
  return ` ${clip(oneLine(text), replyCharactersMax)}\n`;
}

function wordingsOf(role: Example['role'], all: readonly Headings[], examples: readonly Example[]): Wording[] {
  return all.map(({ id, variant, headings }) => {
    const list = (label: Label) => {
      const own = examples.filter((example) => example.role === role && labelOf[example.label] === label);
      // Another order for each wording: neighbours of one family are pulled apart by a stride.
      const stride = 5 + 2 * variant;
      const keyed = own.map(({ next }, at) => ({ next, key: (at * stride + variant) % Math.max(1, own.length) }));
      const ordered = keyed.sort((a, b) => a.key - b.key);
      const kept = ordered.filter((_, at) => at % leftOutOf !== variant % leftOutOf);
      return `${headings[label]}\n${kept.map(({ next }) => `-${entryOf(next)}`).join('')}-`;
    };
    return {
      id,
      lists: { satisfied: list('satisfied'), unrelated: list('unrelated'), correction: list('correction') },
    };
  });
}
