// Learns which sentences of a message hold beyond their turn ("as a rule …"). In: messages of people to an assistant, each with what of it
// holds, from several hands; replies that only judge; and turns of people who do not correct. Out: weights, in the judge's form. The same each time.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { featuresOf, hasLastingWords, wordsAlone, type WordWeights } from '@backtalk/judge';
import { repositoryRoot } from '@backtalk/kit/testing';
import { z } from 'zod';
import { readBareReplies } from './fit-bare.js';
import { fitRole, type Labelled } from './fit-words.js';
import type { Sample } from './sources.js';

const standingMessage = z.object({
  text: z.string(),
  /** What of the text holds from then on; empty for none. */
  standing: z.string(),
  lang: z.string(),
  /** Whose hand; left out in a set of one. */
  source: z.string().default(''),
});
export type StandingMessage = z.infer<typeof standingMessage>;

export function readStandingMessages(
  file = join(repositoryRoot(), 'test/judge/labelled/standing.jsonl'),
): StandingMessage[] {
  const lines = readFileSync(file, 'utf8').split('\n');
  return lines.filter((line) => line !== '').map((line) => standingMessage.parse(JSON.parse(line)));
}

/** @param samples turns of people: what they say who are content, or go on to something else, holds for nothing to come */
export function fitStanding(messages: readonly StandingMessage[], samples: readonly Sample[]): WordWeights {
  return fitRole([...messages, ...onlyJudging(), ...goingOn(samples)].flatMap((message) => sentencesIn(message)));
}

/** What asks for nothing holds for nothing either. */
function onlyJudging(): StandingMessage[] {
  const replies = readBareReplies().filter(({ says }) => !says);
  return replies.map(({ text, lang }) => ({ text, standing: '', lang, source: 'only judging' }));
}

function goingOn(samples: readonly Sample[]): StandingMessage[] {
  return samples.flatMap(({ material, label, source }) => {
    if (material?.next.role !== 'user' || label === -1) return [];
    const text = material.next.userText;
    // A few are content and say what they want kept.
    return sentencesOf(text).some((sentence) => hasLastingWords(sentence))
      ? []
      : [{ text, standing: '', lang: '', source: `turns of ${source}` }];
  });
}

const betweenSentences = /(?<=[.!?\u2026\u0964\u06D4\u061F\u1362])\s+|(?<=[\u3002\uFF01\uFF1F\u17D4\u17D5\u104B])|\n+/u;
const sentenceCharactersMax = 300;
const sentencesMax = 20;

/** More plainly than the judge does, as when its bounds were settled: weights of any other division ask for other bounds. */
function sentencesOf(said: string): string[] {
  const sentences = said.replaceAll('\u2019', "'").split(betweenSentences);
  return sentences
    .map((sentence) => sentence.trim())
    .filter((sentence) => sentence !== '' && sentence.length <= sentenceCharactersMax)
    .slice(0, sentencesMax);
}

/** An abbreviation cuts sentences, too: what is left of one is none. */
const severalWords = /\s|\p{Script=Han}|\p{Script=Hiragana}|\p{Script=Katakana}/u;

function sentencesIn({ text, standing, source }: StandingMessage): Labelled[] {
  const held = sentencesOf(standing).filter((part) => severalWords.test(part));
  return sentencesOf(text).map((sentence) => {
    const holds = held.some((part) => sentence.includes(part));
    return { features: featuresOf(wordsAlone(sentence)), label: holds ? 1 : -1, source };
  });
}
