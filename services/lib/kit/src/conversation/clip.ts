// Keeps texts bounded that others wrote, before a pattern or a prompt reads them. In: text. Out: the text, or its head and
// tail with a mark between: what matters stands at either end. Pure.

export function clip(text: string, charactersMax: number): string {
  if (text.length <= charactersMax) return text;
  const half = Math.max(0, Math.floor((charactersMax - mark.length) / 2));
  return `${wholeCharacters(text.slice(0, half))}${mark}${wholeCharacters(text.slice(text.length - half))}`;
}

const mark = ' [\u2026] ';

/** A cut through a character of two code units would leave half of it. */
function wholeCharacters(text: string): string {
  return text.replace(/[\uD800-\uDBFF]$/, '').replace(/^[\uDC00-\uDFFF]/, '');
}

export function oneLine(text: string): string {
  return text.replaceAll(/\s+/g, ' ').trim();
}
