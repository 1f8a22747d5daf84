// Learns which sentences of a message hold beyond their turn ("as a rule …"). In: messages of people to an assistant, each with what of it
// holds, from several hands, and replies that only judge. Out: weights, in the judge's form. The same each time.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { featuresOf, sentencesOf, wordsAlone, type WordWeights } from '@backtalk/judge';
import { repositoryRoot } from '@backtalk/kit/testing';
import { z } from 'zod';
import { readBareReplies } from './fit-bare.js';
import { fitRole, type Labelled } from './fit-words.js';

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

export function fitStanding(messages: readonly StandingMessage[]): WordWeights {
  return fitRole([...messages, ...onlyJudging()].flatMap((message) => sentencesIn(message)));
}

/** What asks for nothing holds for nothing to come. */
function onlyJudging(): StandingMessage[] {
  const replies = readBareReplies().filter(({ says }) => !says);
  return replies.map(({ text, lang }) => ({ text, standing: '', lang, source: 'replies' }));
}

function sentencesIn({ text, standing, source }: StandingMessage): Labelled[] {
  const held = sentencesOf(standing);
  return sentencesOf(text).map((sentence) => {
    const holds = held.some((part) => sentence.includes(part));
    return { features: featuresOf(wordsAlone(sentence)), label: holds ? 1 : -1, source };
  });
}
