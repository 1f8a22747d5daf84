// Is this a grade, and which? In: the few characters that should hold one, or an answer without any box. Out: −1, 0, +1 or nothing. The ways
// in which models write a minus, digits and LaTeX around them are known; no word is a grade. Pure.
import { verdictOf, type Verdict } from './verdict-value.js';

/** What a grade is called, in the languages that judges are known to slip into. */
const names =
  '(?:final |overall )?(?:grade|verdict|score|rating|answer|judge?ment)|bewertung|note|urteil|calificaci\u00f3n|puntuaci\u00f3n|nota|voto|\u043e\u0446\u0435\u043d\u043a\u0430|(?:\u6700\u7ec8)?(?:\u8bc4\u5206|\u7b49\u7ea7|\u5f97\u5206)|\u8a55\u4fa1|\u8a55\u70b9|\ub4f1\uae09|\uc810\uc218|\u0627\u0644\u062f\u0631\u062c\u0629|\u0627\u0644\u062a\u0642\u064a\u064a\u0645';
const graded = new RegExp(
  `^(?:(?:the )?(?:${names})(?: is)? ?[:=]? ?)?([+-]?) ?([01])(?: ?\\([^()\\d+-]{1,40}\\))?$`,
  'iu',
);
const namedLine = new RegExp(`^(?:the )?(?:${names})(?: is)? ?[:=]`, 'iu');
const latex = /\\(?:text|textbf|mathrm|mathbf|mathit|mathsf|bm|boldsymbol|operatorname)\b|\\[,;!]/g;
const wrapping = /[{}$*_`"\u201c\u201d\u201e\u00ab\u00bb\\]/g;
const minus = /[\u2010-\u2015\u2212\ufe63]/g;
const digits: Readonly<Record<string, string>> = { '\u0660': '0', '\u0661': '1', '\u06f0': '0', '\u06f1': '1' };

export function gradeIn(text: string): Verdict | undefined {
  const [, sign, digit] = graded.exec(plain(text)) ?? [];
  return digit === undefined ? undefined : verdictOf(Number(`${sign ?? ''}${digit}`));
}

/** An answer that is a grade and nothing else, or ends with a line that names one. */
export function gradeOfLine(text: string): Verdict | undefined {
  const lines = text.split(/\n|(?<=[\u3002\uff01\uff1f])|(?<=[.!?])\s+/).filter((line) => line.trim() !== '');
  const last = lines.at(-1) ?? '';
  return lines.length === 1 || namedLine.test(plain(last)) ? gradeIn(last) : undefined;
}

const signed = /(?<![\p{L}\d.,/+-])([+-])1(?![\d.,]\d|[\d%\p{L}])/gu;

/** "+1" and "-1" as they stand in a sentence. */
export function signedGradesIn(text: string): Verdict[] {
  return [...text.normalize('NFKC').replaceAll(minus, '-').matchAll(signed)].map(([, sign]) => (sign === '-' ? -1 : 1));
}

function plain(text: string): string {
  const known = text.normalize('NFKC').replaceAll(minus, '-').replaceAll(latex, ' ').replaceAll(wrapping, '');
  const ascii = known.replaceAll(/[\u0660\u0661\u06f0\u06f1]/g, (digit) => digits[digit] ?? digit);
  return ascii
    .replaceAll(/\s+/g, ' ')
    .trim()
    .replace(/ ?[.\u3002!]$/u, '');
}
