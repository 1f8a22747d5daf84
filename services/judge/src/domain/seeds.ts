// The seed of a vote. In: the turn and the number of the vote. Out: a number, the same each time. Pure.
import { sha256Hex } from '@backtalk/kit';

export function seedOf(turn: string, vote: number): number {
  return Number.parseInt(sha256Hex(`${turn}/${vote}`).slice(0, 8), 16);
}
