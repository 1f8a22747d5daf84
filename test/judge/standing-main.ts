// `node test/dist/judge/standing-main.js [--file F.jsonl]`: how well the judge hears that words hold beyond their turn. In: lines with `text`,
// `standing` (what of it holds; empty for none), `lang` and `source`; without a file, the labelled messages, each hand's by weights of the other
// hands. Out: for each source a line of JSON with how many messages were heard, and how many by the plain words for it alone.
import { parseArgs } from 'node:util';
import {
  createStandingSentences,
  hasLastingWords,
  readIsBare,
  readStandingSentences,
  sentencesOf,
  type StandingSentences,
} from '@backtalk/judge';
import { fitStanding, readStandingMessages, type StandingMessage } from './fit-standing.js';
import { readItems } from './items.js';
import { readSamples } from './sources.js';

const { file } = parseArgs({ options: { file: { type: 'string', default: '' } } }).values;
const messages = file === '' ? readStandingMessages() : readStandingMessages(file);
const samples = readSamples(readItems());
const known = readStandingSentences();

for (const hand of new Set(messages.map(({ source }) => source))) {
  const others = messages.filter(({ source }) => source !== hand);
  const standingIn = file === '' ? createStandingSentences(fitStanding(others, samples), readIsBare()) : known;
  print(hand, standingIn);
}

function print(hand: string, standingIn: StandingSentences): void {
  const rows = [true, false].flatMap((stands) =>
    [true, false].map((isEnglish) => {
      const isIn = ({ source, standing, lang }: StandingMessage) =>
        source === hand && (standing !== '') === stands && (lang === 'en') === isEnglish;
      const texts = messages.filter((message) => isIn(message)).map(({ text }) => text);
      const inPlainWords = (text: string) => sentencesOf(text).some((sentence) => hasLastingWords(sentence));
      return {
        stands,
        english: isEnglish,
        n: texts.length,
        heard: texts.filter((text) => standingIn(text).length > 0).length,
        plainWords: texts.filter((text) => inPlainWords(text)).length,
      };
    }),
  );
  process.stdout.write(`${JSON.stringify({ source: hand, rows })}\n`);
}
