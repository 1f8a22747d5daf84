// What waits may be held only so far: beyond it nothing more is delivered. In: what is held while no batch can close. Out: which turns give
// their place, so that the corrections of others are heard. They are samples of a tenant that has not enough for a batch, what is left over of
// the at-least-one rule, and anchors of either: a tenant with enough for a batch has one after `waitMs`. Pure.
import type { Candidate } from './candidate.js';
import type { Recipe } from './recipe.js';
import type { SettleReason } from './settle-reason.js';

export const crowdedOutReason: SettleReason = 'crowded_out';

export interface HeldTurn {
  readonly candidate: Pick<Candidate, 'turn' | 'sequence' | 'waitingSinceMs' | 'reason'>;
  /** Each revision of its judgement is one. */
  readonly messages: number;
}

export interface Crowding {
  /** That give their place now, oldest first. */
  readonly turns: readonly string[];
  /** When others may have to; undefined where there is room. */
  readonly untilMs: number | undefined;
}

/** Of what may be held: from here on places are given, */
const crowdedShare = 3 / 4;
/** and down to here, so that one fact settles many. */
const roomyShare = 1 / 2;
/** A recipe may let a batch wait for a year; other tenants wait for it no longer than a day. */
const waitMostMs = 86_400_000;

export function crowdedOut(
  held: readonly HeldTurn[],
  { waitMs }: Pick<Recipe, 'waitMs'>,
  nowMs: number,
  heldMax: number,
): Crowding {
  const messages = held.reduce((sum, one) => sum + one.messages, 0);
  const waiting = held.filter(({ candidate }) => candidate.reason === undefined);
  if (messages < heldMax * crowdedShare) return { turns: [], untilMs: undefined };
  let excess = messages - heldMax * roomyShare;
  const turns: string[] = [];
  for (const { candidate, messages } of waiting.toSorted((a, b) => a.candidate.sequence - b.candidate.sequence)) {
    if (excess <= 0) break;
    const untilMs = candidate.waitingSinceMs + Math.min(waitMs, waitMostMs);
    if (nowMs < untilMs) return { turns, untilMs };
    turns.push(candidate.turn);
    excess -= messages;
  }
  return { turns, untilMs: undefined };
}
