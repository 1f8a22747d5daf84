// What ends a sentence. In the scripts of the first a space follows: Latin, Devanagari, Bengali and its neighbours, Arabic and Urdu,
// Ethiopic; in those of the second none.
export const spacedEnds = '.!?\u2026\u0964\u06D4\u061F\u1362';
export const unspacedEnds = '\u3002\uFF01\uFF1F';
