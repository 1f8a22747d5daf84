// What a next state says of the answer before it: went wrong, says nothing, went well. Pure.

export type Verdict = -1 | 0 | 1;

export function verdictOf(value: number): Verdict {
  if (value > 0) return 1;
  return value < 0 ? -1 : 0;
}
