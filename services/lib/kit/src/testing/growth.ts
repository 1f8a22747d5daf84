// How the work of reading a text grows with its length. In: a reader and a way to make texts. Out: how many times the work
// of a quarter a whole megabyte takes: about 4 where each character costs the same, 16 where each costs as much as there are.

const megabyte = 1_000_000;
/** Too little to be measured is nothing. */
const leastMicroseconds = 20_000;

export function growth(read: (text: string) => unknown, make: (characters: number) => string): number {
  const small = make(megabyte / 4);
  const large = make(megabyte);
  const ratio =
    workOf(() => read(large)) /
    Math.max(
      workOf(() => read(small)),
      leastMicroseconds,
    );
  // Other work of the machine, such as collecting garbage, is seldom there twice.
  return ratio < 8
    ? ratio
    : workOf(() => read(large)) /
        Math.max(
          workOf(() => read(small)),
          leastMicroseconds,
        );
}

function workOf(work: () => unknown): number {
  const before = process.cpuUsage();
  work();
  const { user, system } = process.cpuUsage(before);
  return user + system;
}

/** Texts on which careless patterns begin anew at every character, each repeated to a length. */
export const hostileTexts: readonly (readonly [string, (characters: number) => string])[] = [
  '<system-reminder>',
  '<system-reminder',
  '</system-reminder><system-reminder>',
  '<environment_details x',
  '\u201c',
  '\u00ab',
  '"',
  '``',
  '```',
  '=',
  '= ',
  '=1 ',
  'Tests: ',
  ' ',
  '\t\n',
  '[system',
  '1 failed ',
  'a:',
  'a ',
  '. ',
  '<a ',
  '\\boxed{ ',
  '[HINT_START]',
  'generate ',
  'concise ',
  'http://',
  'i said ',
  'ok ok, ',
  '{"a":',
  '---A',
  '--- A ',
  '[10:10 aaa] ',
  '<<<BEGIN_AB>>><<<END_AB>>>',
].map((piece) => [piece, (characters) => piece.repeat(Math.ceil(characters / piece.length)) + 'x'] as const);
