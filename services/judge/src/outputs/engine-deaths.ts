// How many engines ended while they had the votes of a turn. In: the turn, and the engine whose connection was lost. Out: whether its
// votes may be sent to another engine. It lies in Valkey beside the queue, because any judge casts any vote; what is lost there costs
// further engines and nothing else.
import { deathKeptMs, deathsMax, sameDeathMs } from '@backtalk/dialects';

/** The two commands that it needs, each with its deadline. */
export interface DeathStore {
  /** False where the key is there. */
  readonly setOnce: (key: string, forMs: number) => Promise<boolean>;
  readonly count: (key: string) => Promise<number>;
  readonly increase: (key: string, forMs: number) => Promise<number>;
}

export class EngineDeaths {
  constructor(private readonly store: DeathStore) {}

  async areTooMany(turn: string): Promise<boolean> {
    return (await this.store.count(keyOf(turn))) >= deathsMax;
  }

  /** Votes of one turn that one engine had when it ended are one death. Out: true when there are too many. */
  async died(turn: string, engine: string): Promise<boolean> {
    const isNew = await this.store.setOnce(`${keyOf(turn)}:${engine}`, sameDeathMs);
    return isNew ? (await this.store.increase(keyOf(turn), deathKeptMs)) >= deathsMax : this.areTooMany(turn);
  }
}

function keyOf(turn: string): string {
  return `backtalk:judge-deaths:${turn}`;
}
