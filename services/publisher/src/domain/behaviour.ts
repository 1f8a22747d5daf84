// Are a candidate's answers still answers to what was asked? In: answers of the candidate and of versions that it is compared
// with, to the same probe questions. Out: how many fail, and whether that is more than chance would give. Pure. What an answer
// says or how it is worded is not looked at: a lesson may change both.
import type { ComparedAnswer } from '@backtalk/proto/facts';
import type { GateVerdict } from './gate.js';
import { sum } from './means.js';

/** One line each, of subjects that have nothing to do with each other. */
export const probeQuestions: readonly string[] = [
  'How do bees make honey?',
  'Why is the sky blue during the day?',
  'What does a carburettor do in an engine?',
  'How can I remove a coffee stain from a carpet?',
  'What causes an earthquake?',
  'How do I tie a bow tie?',
  'What is the difference between a violin and a cello?',
  'How do vaccines protect against disease?',
  'What should I pack for a week in the desert?',
  'How does a refrigerator stay cold?',
  'Why do leaves change colour in autumn?',
  'What makes bread rise in the oven?',
  'How do I train a puppy to sit?',
  'What is the job of a notary?',
  'How are tunnels dug under a river?',
  'Why does the moon have phases?',
];

/** Other questions that each answer is compared with. */
const othersMax = 5;
const gramTokens = 4;
/** So many times the same run of tokens is a loop. */
const loopTimes = 3;

export type AnswerFault = 'empty' | 'looping' | 'off_topic';
export const answerFaults: readonly AnswerFault[] = ['empty', 'looping', 'off_topic'];

/** The fault of each answer, in the order of the questions; undefined where it has none. */
export type Faults = readonly (AnswerFault | undefined)[];

/** Which other questions an answer is scored after, by their places among `count`. */
export function otherQuestions(at: number, count: number): number[] {
  return Array.from({ length: Math.min(othersMax, count - 1) }, (_, step) => (at + 1 + step) % count);
}

/** What is wrong with an answer before anything is scored. */
export function faultOfText(text: string, ids: readonly number[]): AnswerFault | undefined {
  if (text.trim() === '') return 'empty';
  const times = new Map<string, number>();
  for (let at = 0; at + gramTokens <= ids.length; at += 1) {
    const gram = ids.slice(at, at + gramTokens).join();
    times.set(gram, (times.get(gram) ?? 0) + 1);
  }
  return Math.max(0, ...times.values()) >= loopTimes ? 'looping' : undefined;
}

/**
 * @param own logprobs of an answer after its own question, under the base model
 * @param others the same after other questions
 */
export function faultOfTopic(own: readonly number[], others: readonly (readonly number[])[]): AnswerFault | undefined {
  const nats = sum(own);
  return others.some((logprobs) => sum(logprobs) > nats) ? 'off_topic' : undefined;
}

export interface Compared {
  readonly version: string;
  readonly faults: Faults;
}

/**
 * Refuses a candidate with more faults than one of the others has on the same questions, by a one-sided sign test: of the
 * questions where only one of the two fails, so many would be the candidate's with a probability below `level` if both were
 * equally good.
 */
export function judgeBehaviour(candidate: Faults, others: readonly Compared[], level: number): GateVerdict {
  const measurements: Record<string, number> = { behaviour_probes: candidate.length };
  for (const fault of answerFaults) measurements[`behaviour_${fault}`] = candidate.filter((it) => it === fault).length;
  const why = others.map((other) => whyWorse(candidate, other, level)).find((reason) => reason !== '') ?? '';
  return { measurements, why };
}

function whyWorse(candidate: Faults, { version, faults }: Compared, level: number): string {
  const worse = candidate.filter((fault, at) => fault !== undefined && faults[at] === undefined).length;
  const better = candidate.filter((fault, at) => fault === undefined && faults[at] !== undefined).length;
  const chance = signTest(worse, better);
  if (chance >= level) return '';
  const named = answerFaults.map((fault) => [candidate.filter((it) => it === fault).length, fault] as const);
  const kinds = named.flatMap(([count, fault]) => (count > 0 ? [`${count} ${fault}`] : [])).join(', ');
  const before = faults.filter((fault) => fault !== undefined).length;
  return `behaviour: of ${candidate.length} answers ${kinds}; ${before} of ${version}'s (p ${chance.toPrecision(1)})`;
}

/** Questions whose answers are kept for people to read, and characters of each answer. */
const comparedMax = 8;
const comparedCharacters = 400;

/** What two versions answered to the same probe questions, for people to read. */
export function comparedAnswers(before: readonly string[], after: readonly string[]): ComparedAnswer[] {
  const cut = (text = '') => [...text.trim()].slice(0, comparedCharacters).join('');
  const count = Math.min(comparedMax, before.length, after.length);
  return probeQuestions
    .slice(0, count)
    .map((question, at) => ({ question, before: cut(before[at]), after: cut(after[at]) }));
}

/** Probability of at least `worse` heads among `worse + better` throws of a fair coin. */
export function signTest(worse: number, better: number): number {
  const throws = worse + better;
  let ways = 1;
  let tail = 0;
  for (let heads = 0; heads <= throws; heads += 1) {
    if (heads >= worse) tail += ways;
    ways = (ways * (throws - heads)) / (heads + 1);
  }
  return tail / 2 ** throws;
}
