// What of a message its author wrote for us, and what is pasted. In: a user's message. Out: the message without what
// stands in quotation marks, code fences and quoted lines: that is another's text, and says nothing of the answer. Work
// grows with the text's length and no faster, whatever stands in it.
import { clip } from '@backtalk/kit';

/** Shorter quotations are figures of speech or names, and stay. */
const quotedCharactersMin = 24;
/** Of a longer message, head and tail are read. */
const charactersMax = 16_384;
const marks = [
  ['"', '"'],
  ['\u201e', '\u201c'],
  ['\u201c', '\u201d'],
  ['\u300c', '\u300d'],
  ['\u00ab', '\u00bb'],
] as const;

export function ownWords(text: string): string {
  const withoutCode = clip(text, charactersMax)
    .split('```')
    .filter((_, at) => at % 2 === 0)
    .join(' ');
  const withoutQuotes = marks.reduce((rest, [open, close]) => withoutQuoted(rest, open, close), withoutCode);
  return withoutQuotes
    .split('\n')
    .filter((line) => !line.startsWith('>'))
    .join('\n')
    .trim();
}

function withoutQuoted(text: string, open: string, close: string): string {
  const kept: string[] = [];
  let from = 0;
  for (;;) {
    const start = text.indexOf(open, from);
    const end = start === -1 ? -1 : text.indexOf(close, start + 1);
    if (end === -1) return kept.concat(text.slice(from)).join('');
    const isShort = end + 1 - start < quotedCharactersMin;
    kept.push(text.slice(from, start), isShort ? text.slice(start, end + 1) : ' ');
    from = end + 1;
  }
}
