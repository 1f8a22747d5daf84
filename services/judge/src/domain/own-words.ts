// What of a message its author wrote for us, and what is pasted. In: a user's message. Out: the message without what
// stands in quotation marks, code fences and quoted lines: that is another's text, and says nothing of the answer.

/** Shorter quotations are figures of speech or names, and stay. */
const quotedCharactersMin = 24;
const fence = /```[\s\S]*?(?:```|$)/g;
const quotations = [/"[^"]*"/g, /\u201c[^\u201d]*\u201d/g, /\u00ab[^\u00bb]*\u00bb/g];

export function ownWords(text: string): string {
  const withoutCode = text.replace(fence, ' ');
  const withoutQuotes = quotations.reduce(
    (rest, pattern) => rest.replace(pattern, (part) => (part.length < quotedCharactersMin ? part : ' ')),
    withoutCode,
  );
  return withoutQuotes
    .split('\n')
    .filter((line) => !line.startsWith('>'))
    .join('\n')
    .trim();
}
