// What one judgement is about, read from the log. Pure types.
import type { NextState } from './next-state.js';

export interface Message {
  /** "system", "user", "assistant", "tool". */
  readonly role: string;
  readonly text: string;
}

export interface TurnPlace {
  readonly turn: string;
  readonly tenant: string;
  readonly user: string;
  readonly policy: string;
  readonly session: string;
}

/** A turn with its next state. */
export interface Material {
  readonly place: TurnPlace;
  /** Before the answer, oldest first. */
  readonly conversation: readonly Message[];
  /** The last words of a person before the answer. */
  readonly question: string;
  readonly answer: string;
  readonly thoughts: string;
  /** Weights version that answered; empty where that is not known. */
  readonly version: string;
  readonly next: NextState;
  /** No answer stands before it, and its question is a person's own: no attempt at a task. */
  readonly begins?: boolean;
  /** What the person did in place of saying anything; then `next` is empty. */
  readonly act?: 'regenerated';
  /** How an answer ended that is not whole. */
  readonly ending?: 'stopped' | 'failed';
}
