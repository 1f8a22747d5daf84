// Is it one turn's votes that fail, or whatever is asked? In: the turn of a vote that failed, and that one was cast. Out: whether the engines
// fail at everything: then no vote is to blame. Counted in each judge by itself.

/** Of so many turns in a row every vote has failed. */
const turnsMin = 3;

export class Outage {
  private readonly turns = new Set<string>();

  /** @returns how many turns failed in a row where those are too many to be to blame themselves; else undefined */
  failed(turn: string): number | undefined {
    if (this.turns.size < turnsMin) this.turns.add(turn);
    return this.turns.size >= turnsMin ? this.turns.size : undefined;
  }

  /** A vote was cast: those that fail from here on are looked at anew. */
  answered(): void {
    this.turns.clear();
  }
}
