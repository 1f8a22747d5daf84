// How two wishes of a person stand to each other. `same`: who follows one follows the other. `opposite`: both cannot hold, so the newer one
// ends the older. `different`: all else, and whatever is not sure. Nothing here is about who said them, or when.

export type WishRelation = 'same' | 'opposite' | 'different';

/** Pure, and symmetric in its two wishes. */
export type Relate = (a: string, b: string) => WishRelation;

export interface NewWish {
  readonly text: string;
  /** What it may be the same as, or the opposite of: the newest first. */
  readonly beside: readonly string[];
}

/** What decides it; it may need to ask somewhere first. */
export interface WishRelations {
  /** `Relate` knows an answer for any two wishes, also where none was asked for. */
  among(wishes: readonly NewWish[], signal: AbortSignal): Promise<Relate>;
}
