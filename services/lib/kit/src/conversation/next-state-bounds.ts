// How much of what followed an answer the log keeps. In: nothing. Out: bounds that its writer keeps to, that its readers
// read by, and that a share of the log is counted by. Pure.

/** Of a longer text, head and tail are kept: no reader reads more. */
const textCharactersMax = 16_384;
/** What reads as JSON may be as long and is kept whole, since half of it has no fields. */
const jsonBytesMax = 1_000_000;
/** Of all texts that are not kept whole, */
const textsCharactersMax = 16 * textCharactersMax;
/** and of the names and ids of all tools. */
const namesCharactersMax = 16_384;
const characterBytesMax = 3;

export const nextStateBounds = {
  textCharactersMax,
  jsonBytesMax,
  textsCharactersMax,
  namesCharactersMax,
  /** All that a next state takes, at most. */
  bytesMax: jsonBytesMax + characterBytesMax * (textsCharactersMax + namesCharactersMax),
} as const;
