// What a next state says again of the question and the answer before it, and what is new in it: a question that is asked again was not
// answered, and a number that is new beside one of the answer puts it right. In: the three texts. Out: names of features. Pure.
import { asksOn, contentWords, sentencesIn, stemsIn, steps } from './words.js';

interface Before {
  readonly question: string;
  readonly answer: string;
}

const shares = [-0.5, 0.001, 0.15, 0.35, 0.6, 0.85];
const runShares = [0.02, 0.1, 0.25, 0.5, 0.8];
const runCharacters = 4;

/** @param text of the next state, in small letters, @param said as it was written */
export function repeatsIn(text: string, said: string, { question, answer }: Before): string[] {
  const [next, asked, answered] = [contentWords(text), contentWords(question), contentWords(answer)];
  const end = /[?\uFF1F]$/.test(said.trimEnd()) ? '?' : '.';
  const measured: readonly (readonly [string, number])[] = [
    ['next in question', shareIn(next, asked)],
    ['question in next', shareIn(asked, next)],
    ['next in answer', shareIn(next, answered)],
    ['answer in next', shareIn(answered, next)],
    ['question in answer', shareIn(asked, answered)],
  ];
  return [
    ...measured.flatMap(([name, share]) => {
      const step = `=${name} ${steps(share, shares)}`;
      return [step, `${step} ${end}`];
    }),
    `=known ${steps(shareIn(next, new Set([...asked, ...answered])), shares)}`,
    `=runs of question ${steps(sharedRuns(text, question), runShares)}`,
    `=runs of answer ${steps(sharedRuns(text, answer), runShares)}`,
    ...numbersIn(said, { question, answer }),
    ...sentencesByReach(text, asked, answered),
  ];
}

/** Below 0 where there is nothing to share. */
function shareIn(words: ReadonlySet<string>, others: ReadonlySet<string>): number {
  if (words.size === 0) return -1;
  return [...words].filter((word) => others.has(word)).length / words.size;
}

function sharedRuns(one: string, other: string): number {
  const [a, b] = [runsOf(one), runsOf(other)];
  return [...a].filter((run) => b.has(run)).length / Math.max(1, Math.min(a.size, b.size));
}

function runsOf(text: string): Set<string> {
  const words = ` ${(text.toLowerCase().match(/[\p{L}\p{N}]+/gu) ?? []).join(' ')} `;
  const count = Math.max(0, words.length - runCharacters + 1);
  return new Set(Array.from({ length: count }, (_, at) => words.slice(at, at + runCharacters)));
}

function numbersIn(said: string, { question, answer }: Before): string[] {
  const of = (text: string) => new Set(text.match(/\d+/g) ?? []);
  const [next, asked, answered] = [of(said), of(question), of(answer)];
  if (next.size === 0) return [];
  const isNew = [...next].some((number) => !asked.has(number) && !answered.has(number));
  return [
    '=number',
    ...(isNew ? [answered.size > 0 ? '=number new beside' : '=number new'] : []),
    ...([...next].some((number) => answered.has(number)) ? ['=number of answer'] : []),
    ...([...next].some((number) => asked.has(number)) ? ['=number of question'] : []),
  ];
}

/** Of each sentence, what it is about and how it begins and ends. */
function sentencesByReach(text: string, asked: ReadonlySet<string>, answered: ReadonlySet<string>): string[] {
  const sentences = sentencesIn(text);
  return sentences.flatMap((sentence, at) => {
    const [first] = stemsIn(sentence);
    if (first === undefined) return [];
    const words = contentWords(sentence);
    const [ofQuestion, ofAnswer] = [shareIn(words, asked), shareIn(words, answered)];
    const reach =
      ofQuestion > 0.34 && ofQuestion >= ofAnswer
        ? 'question'
        : ofAnswer > 0.2
          ? 'answer'
          : asksOn(sentence)
            ? 'back'
            : 'apart';
    const end = /[?!.]$/.exec(sentence.trimEnd())?.[0] ?? '';
    return [
      `>r ${first} ${reach}`,
      `>r ${reach}${end}`,
      ...(at === 0 ? [`>r first ${reach}${end}`] : []),
      ...(at === sentences.length - 1 ? [`>r last ${reach}${end}`] : []),
    ];
  });
}
