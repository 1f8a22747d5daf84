// Was an answer made again? In: a turn that was continued, and others of its session. Out: of those that were asked the same before
// it, whether the person set their answer aside; the fact that says so. A first question asked again may as well begin another
// conversation, so that it counts in a session that its client declares only. Pure.
import { personWords } from '@backtalk/kit';
import type { Consent, TurnContinued } from '@backtalk/proto/facts';
import type { ChatMessage } from './messages.js';
import { nextConsent, type TurnEntry } from './placement.js';

/** As long as a person looks at an answer before they have it made again. */
const madeAgainWithinMs = 10 * 60_000;

export interface AskedTurn {
  readonly entry: TurnEntry;
  /** Of its request. */
  readonly sequence: number;
  readonly timeMs: number;
  readonly messages: readonly ChatMessage[];
}

/** By what the index knows: it has its answer, no request went on from it, and it goes on from the same turn as the other. */
export function mayBeSetAside(earlier: TurnEntry, chosen: Pick<AskedTurn, 'entry' | 'sequence'>): boolean {
  const { turn, parent, policy } = chosen.entry;
  const isOpen = earlier.turn !== turn && earlier.continuedBy === '';
  // One that was still being answered was asked twice at once, as samplers do.
  const isAnswered = earlier.completedSequence > 0 && earlier.completedSequence < chosen.sequence;
  return isOpen && isAnswered && earlier.parent === parent && earlier.policy === policy;
}

export function isSetAside(earlier: AskedTurn, chosen: AskedTurn): boolean {
  return chosen.timeMs - earlier.timeMs <= madeAgainWithinMs && asksTheSame(earlier.messages, chosen.messages);
}

/** A person's words are the same whatever their client puts around them; an agent's next step is no question of theirs. */
function asksTheSame(one: readonly ChatMessage[], other: readonly ChatMessage[]): boolean {
  const isAsked = one.at(-1)?.role === 'user' && wordsOf(one.at(-1)) !== '';
  return isAsked && one.length === other.length && one.every((message, at) => isSame(message, other[at]));
}

function isSame(one: ChatMessage, other: ChatMessage | undefined): boolean {
  return one.role === other?.role && wordsOf(one) === wordsOf(other);
}

function wordsOf(message: ChatMessage | undefined): string {
  const texts = message?.texts ?? [];
  const words = message?.role === 'user' ? texts.map((text) => personWords(text)) : texts;
  return words.filter((text) => text !== '').join('\n');
}

/** @param consent of the request that went on from the other answer */
export function regenerationOf({ entry }: AskedTurn, chosen: TurnEntry, consent: Consent): TurnContinued {
  const { turn, tenant, user, policy, session, parent } = entry;
  return {
    turn,
    tenant,
    user,
    policy,
    session,
    parent,
    continuedBy: chosen.turn,
    nextState: [],
    main: true,
    consent: nextConsent(entry, nextConsent(chosen, consent)),
    act: 'regenerated',
  };
}
