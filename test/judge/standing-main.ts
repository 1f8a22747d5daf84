// `node test/dist/judge/standing-main.js [--file F.jsonl]`: how well the judge hears that words hold beyond their turn. In: lines with `text`,
// `standing` (what of it holds; empty for none) and `lang`; without a file, the labelled messages, each hand's by weights of the other hands.
// Out: one line of JSON with the totals, for each hand.
import { parseArgs } from 'node:util';
import { createStandingSentences, readStandingSentences, type StandingSentences } from '@backtalk/judge';
import { fitStanding, readStandingMessages, type StandingMessage } from './fit-standing.js';
import { readItems } from './items.js';
import { readSamples } from './sources.js';

const { file } = parseArgs({ options: { file: { type: 'string', default: '' } } }).values;
if (file !== '') print(file, readStandingMessages(file), readStandingSentences());
else {
  const all = readStandingMessages();
  const samples = readSamples(readItems());
  for (const hand of new Set(all.map(({ source }) => source))) {
    const weights = fitStanding(
      all.filter(({ source }) => source !== hand),
      samples,
    );
    const own = all.filter(({ source }) => source === hand);
    print(hand, own, createStandingSentences(weights));
  }
}

function print(source: string, messages: readonly StandingMessage[], standingIn: StandingSentences): void {
  const heard = (holds: boolean, isIn: (message: StandingMessage) => boolean) => {
    const of = messages.filter((message) => (message.standing !== '') === holds && isIn(message));
    return { n: of.length, heard: of.filter(({ text }) => standingIn(text).length > 0).length };
  };
  const both = (isIn: (message: StandingMessage) => boolean) => ({
    stands: heard(true, isIn),
    doesNot: heard(false, isIn),
  });
  const english = both(({ lang }) => lang === 'en');
  const others = both(({ lang }) => lang !== 'en');
  process.stdout.write(`${JSON.stringify({ source, english, others })}\n`);
}
