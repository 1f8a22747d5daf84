// What a vote may cost. In: the settings of the judge, the model's context, and what its engine counted. Out: tokens for its prompt, and a
// price. Pure.

export interface VoteBudget {
  readonly votes: number;
  /** Of all votes of a verdict together: prompts, thoughts and answers. */
  readonly verdictTokens: number;
  /** Of one vote, before its answer. */
  readonly thinkingTokens: number;
  /** Where the engine does not say what its model holds. */
  readonly contextTokens: number;
}

export const defaultBudget: VoteBudget = { votes: 3, verdictTokens: 24_000, thinkingTokens: 0, contextTokens: 8_192 };
/** A thought, a hint and a grade. */
export const answerTokensMax = 512;

/** Tokens for the prompt of one vote. */
export function promptTokens({ votes, verdictTokens, thinkingTokens }: VoteBudget, contextTokens: number): number {
  return Math.min(Math.floor(verdictTokens / votes), contextTokens) - answerTokensMax - thinkingTokens;
}

export interface Prices {
  /** Of a million tokens. */
  readonly pricePrompt: number;
  /** Of the price of a prompt, for what the cache had. */
  readonly priceCached: number;
  readonly priceAnswer: number;
}

export interface UsedTokens {
  /** Those of the cache among them. */
  readonly promptTokens: number;
  readonly cachedTokens?: number;
  readonly completionTokens: number;
}

export function costOf({ promptTokens, cachedTokens = 0, completionTokens }: UsedTokens, prices: Prices): number {
  const { pricePrompt, priceCached, priceAnswer } = prices;
  const prompt = promptTokens - cachedTokens + cachedTokens * priceCached;
  return (prompt * pricePrompt + completionTokens * priceAnswer) / 1e6;
}
