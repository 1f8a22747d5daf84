// What the scorer measures on answers to held-out questions, and what it is given.

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
