// The judged turns that wait, each in its highest revision, with the messages that carry them: each message is handed back once.
import { ownWish } from '@backtalk/kit';

import type { Candidate } from './candidate.js';

interface Carried<M> {
  readonly message: M;
  /** Who said what the revision was judged by; empty where no person did. */
  readonly giver: string;
}

interface Entry<M> {
  candidate: Candidate;
  /** By revision: a second delivery of one revision replaces the first. */
  readonly messages: Map<number, Carried<M>>;
}

/** A turn that waits, with who said what of it, by revision. */
export interface SaidOf {
  readonly candidate: Candidate;
  readonly givers: ReadonlyMap<number, string>;
}

export class PendingTurns<M> {
  private readonly byTurn = new Map<string, Entry<M>>();

  /** The turn keeps its place in the order of arrival, whatever is said about it later. */
  add(candidate: Candidate, message: M): void {
    const { turn, judged } = candidate;
    const entry = this.byTurn.get(turn);
    const carried = { message, giver: judged.giver };
    if (entry === undefined) {
      this.byTurn.set(turn, { candidate, messages: new Map([[judged.revision, carried]]) });
      return;
    }
    entry.messages.set(judged.revision, carried);
    const present = entry.candidate;
    const sequence = Math.min(present.sequence, candidate.sequence);
    const waitingSinceMs = Math.min(present.waitingSinceMs, candidate.waitingSinceMs);
    const latest = judged.revision >= present.judged.revision ? candidate : present;
    const { bytes, reason } = present;
    const learned = { ...(bytes === undefined ? {} : { bytes }), reason: latest.reason ?? reason };
    entry.candidate = {
      ...latest,
      sequence,
      waitingSinceMs,
      saidAtMs: saidAtMs(latest, present, candidate),
      ...learned,
    };
  }

  /** What was found out about a turn while it waits; its size, and why it is never taken, hold for its later revisions too. */
  learn(
    turn: string,
    found: Pick<Candidate, 'bytes'> | Pick<Candidate, 'reason'> | Pick<Candidate, 'saidAgain'>,
  ): void {
    const entry = this.byTurn.get(turn);
    if (entry !== undefined) entry.candidate = { ...entry.candidate, ...found };
  }

  has(turn: string): boolean {
    return this.byTurn.has(turn);
  }

  candidates(): Candidate[] {
    return [...this.byTurn.values()].map(({ candidate }) => candidate);
  }

  /** With the number of messages that carry each. */
  held(): { readonly candidate: Candidate; readonly messages: number }[] {
    return [...this.byTurn.values()].map(({ candidate, messages }) => ({ candidate, messages: messages.size }));
  }

  said(): SaidOf[] {
    return [...this.byTurn.values()].map(({ candidate, messages }) => ({
      candidate,
      givers: new Map([...messages].map(([revision, { giver }]) => [revision, giver])),
    }));
  }

  /** The turn waits no longer: what carries its revisions from one on, and what carries those before. */
  takeApart(turn: string, from: number): { readonly later: readonly M[]; readonly earlier: readonly M[] } {
    const messages = [...(this.byTurn.get(turn)?.messages ?? [])];
    this.byTurn.delete(turn);
    const of = (isWanted: (revision: number) => boolean) =>
      messages.flatMap(([revision, { message }]) => (isWanted(revision) ? [message] : []));
    return { later: of((revision) => revision >= from), earlier: of((revision) => revision < from) };
  }

  take(turns: Iterable<string>): M[] {
    const messages: M[] = [];
    for (const turn of turns) {
      for (const { message } of this.byTurn.get(turn)?.messages.values() ?? []) messages.push(message);
      this.byTurn.delete(turn);
    }
    return messages;
  }
}

/** A later revision may carry on what was said before. */
function saidAtMs(latest: Candidate, ...revisions: readonly Candidate[]): number {
  const { text } = ownWish(latest.judged);
  const saying = revisions.filter(({ judged }) => ownWish(judged).text === text);
  return Math.min(...saying.map((one) => one.saidAtMs));
}
