// What the scorer measures on answers to held-out questions, and what it is given.

/** The scorer ranks a question among this many: where a block has fewer, an answer finds its own more easily. */
export const questionsOfBlock = 32;

export interface HeldOutAnswer {
  readonly question: string;
  readonly answer: string;
  readonly ended: boolean;
}

/** Shares of answers, 0 to 1. */
export interface Scores {
  readonly obeys: number;
  readonly hit: number;
  readonly headline: number;
  readonly empty: number;
  readonly looping: number;
  readonly echo: number;
}
