// A word as a shell takes it for one. In: any text. Out: the same, in quotes where it needs them.

/** For commands that a person copies. */
export function shellQuoted(word: string): string {
  return /^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", String.raw`'\''`)}'`;
}
