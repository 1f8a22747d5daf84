// What ends a sentence.

/** A space follows, as in Latin, Devanagari, Bengali and its neighbours, Arabic and Urdu, and Ethiopic. */
export const spacedEnds = '.!?\u2026\u0964\u06D4\u061F\u1362';
/** No space need follow, as in Chinese and Japanese, Khmer and Burmese. */
export const unspacedEnds = '\u3002\uFF01\uFF1F\u17D4\u17D5\u104B';
/** Written short before a name, a number or the rest of a sentence, in a few languages. */
const shortened =
  'dr|mr|mrs|ms|mx|st|jr|sr|prof|rev|gen|capt|sgt|lt|vs|approx|incl|excl|fig|vol|hr|fr|frl|nr|bzw|bspw|ca|ggf|evtl|inkl|zzgl|' +
  'mme|mlle|sra|srta|dra|sig|dott|ing|dhr|mevr';
/** Behind such words, and behind single letters ("U.S.", "z. B."), a dot ends nothing. */
const notShortened = String.raw`(?<!(?<![\p{L}\p{N}'\u2019])(?:[\p{Script=Latin}\p{Script=Greek}\p{Script=Cyrillic}]|${shortened})\.)`;
/** Between sentences. */
export const sentenceEnd = new RegExp(
  String.raw`(?<=[${spacedEnds}])${notShortened}(?=\s)|(?<=[${unspacedEnds}])`,
  'iu',
);
