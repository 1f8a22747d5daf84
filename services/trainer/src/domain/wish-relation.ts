// How two wishes of a person stand to each other. `same`: who follows one follows the other. `opposite`: both cannot hold, so the newer one
// ends the older. `different`: all else, and whatever is not sure. Nothing here is about who said them, or when.

export type WishRelation = 'same' | 'opposite' | 'different';

/** Pure, and symmetric in its two wishes. */
export type Relate = (a: string, b: string) => WishRelation;

/** What decides it; it may need to ask somewhere first. */
export interface WishRelations {
  /** @param wishes every text that `Relate` will be asked about, each once */
  among(wishes: readonly string[], signal?: AbortSignal): Promise<Relate>;
}
