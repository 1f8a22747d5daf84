// The seed of a vote. In: the turn and the number of the vote. Out: a number, the same each time. Pure.
import { sha256Hex } from '@backtalk/kit';

/** Some hosts read a seed as a number of 32 bits with a sign, and refuse what is more. */
const seedsEnd = 2 ** 31;

export function seedOf(turn: string, vote: number): number {
  return Number.parseInt(sha256Hex(`${turn}/${vote}`).slice(0, 8), 16) % seedsEnd;
}
