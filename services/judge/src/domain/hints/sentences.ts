// Splits a person's message into sentences. In: text. Out: sentences in order, with their end marks.

const sentencesMax = 40;

export function sentencesOf(text: string): string[] {
  const parts = text
    .replaceAll('\u2019', "'")
    .split(/(?<=[.!?\u2026])\s+|\n+/u)
    .map((part) => part.replaceAll(/\s+/g, ' ').trim());
  return parts.filter((part) => /\p{L}/u.test(part)).slice(0, sentencesMax);
}
