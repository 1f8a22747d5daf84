// What a tool does, by the words of its name: "run_shell_command", "runTests", "container.exec". Pure.

const running =
  'bash sh zsh shell powershell terminal console exec execute executor execution run runs runner command commands cmd process script repl interpreter python test tests pytest build compile make npm cargo lint'.split(
    ' ',
  );
const changing =
  'write edit patch apply create delete remove update replace insert rename move copy send commit push deploy install save set'.split(
    ' ',
  );
/** What another wrote comes back from these. */
const fetching = 'fetch search browse browser web url http https page scrape crawl email mail inbox'.split(' ');

const wordsOf = (name: string) =>
  name
    .replaceAll(/(?<=[a-z0-9])(?=[A-Z])/g, ' ')
    .toLowerCase()
    .split(/[^a-z0-9]+/);
const has = (words: readonly string[], some: readonly string[]) => words.some((word) => some.includes(word));

/** Whether its result ends as a program does: of text that a tool brings, any line may be what its author likes. */
export function runsPrograms(name: string): boolean {
  const words = wordsOf(name);
  return has(words, running) && !has(words, fetching);
}

/** Whether its result's first letters are the agent's own: of what it brings, an author could write them. */
export function bringsNothing(name: string): boolean {
  const words = wordsOf(name);
  return has(words, [...running, ...changing]) && !has(words, fetching);
}
