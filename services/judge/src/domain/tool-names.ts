// What a tool does, by the words of its name: "run_shell_command", "runTests", "container.exec". Pure.

const running =
  'bash sh zsh shell powershell terminal console exec execute executor execution run runs runner command commands cmd process script repl interpreter python test tests pytest build compile make npm cargo lint'.split(
    ' ',
  );
const changing =
  'write edit patch apply create delete remove update replace insert rename move copy send commit push deploy install save set'.split(
    ' ',
  );
/** What another wrote comes back from these: whole words, and parts of words. */
const bringing = 'read open view get list cat load download web url http https page email mail inbox messages'.split(
  ' ',
);
const fetching = /fetch|search|brows|scrap|crawl/i;

const wordsOf = (name: string) =>
  name
    .replaceAll(/(?<=[a-z0-9])(?=[A-Z])/g, ' ')
    .toLowerCase()
    .split(/[^a-z0-9]+/);
const mayBring = (name: string) => fetching.test(name) || has(wordsOf(name), bringing);
const has = (words: readonly string[], some: readonly string[]) => words.some((word) => some.includes(word));

/** Whether its result ends as a program does: of text that a tool brings, any line may be what its author likes. */
export const runsPrograms = (name: string): boolean => has(wordsOf(name), running) && !mayBring(name);

/** Whether its result's first letters are the agent's own: of what it brings, an author could write them. */
export const bringsNothing = (name: string): boolean =>
  has(wordsOf(name), [...running, ...changing]) && !mayBring(name);
