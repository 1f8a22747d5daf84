// What ends a sentence.

/** A space follows, as in Latin, Devanagari, Bengali and its neighbours, Arabic and Urdu, and Ethiopic. */
export const spacedEnds = '.!?\u2026\u0964\u06D4\u061F\u1362';
/** No space need follow, as in Chinese and Japanese, Khmer and Burmese. */
export const unspacedEnds = '\u3002\uFF01\uFF1F\u17D4\u17D5\u104B';
/** Between sentences. */
export const sentenceEnd = new RegExp(`(?<=[${spacedEnds}])(?=\\s)|(?<=[${unspacedEnds}])`, 'u');
