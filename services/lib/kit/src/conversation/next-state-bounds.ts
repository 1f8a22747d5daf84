// How much of what followed an answer the log keeps. In: nothing. Out: bounds that its writer keeps to, that its readers
// read by, and that a share of the log is counted by. Pure.

/** Of a longer text, head and tail are kept: no reader reads more. */
export const nextStateTextCharactersMax = 16_384;
/** What reads as JSON may be as long and is kept whole, since half of it has no fields. */
export const nextStateJsonBytesMax = 1_000_000;
/** Of all texts that are not kept whole, */
export const nextStateTextsCharactersMax = 16 * nextStateTextCharactersMax;
/** and of the names and ids of all tools. */
export const nextStateNamesCharactersMax = 16_384;

const characterBytesMax = 3;

/** All that a next state takes, at most. */
export const nextStateBytesMax =
  nextStateJsonBytesMax + characterBytesMax * (nextStateTextsCharactersMax + nextStateNamesCharactersMax);
