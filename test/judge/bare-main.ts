// `node test/dist/judge/bare-main.js --file F.jsonl`: how well the judge tells a reply that only judges from one that says what is
// wanted. In: lines with `text`, `says` (true where it says what is wanted) and `lang`. Out: one line of JSON with the totals.
import { parseArgs } from 'node:util';
import { readIsBare } from '@backtalk/judge';
import { readBareReplies } from './fit-bare.js';
import { judgeSetErrors } from './errors.js';

const { file } = parseArgs({ options: { file: { type: 'string', default: '' } } }).values;
if (file === '') throw judgeSetErrors.emptySet({});
const isBare = readIsBare();
const replies = readBareReplies(file);
const taken = (says: boolean) => {
  const of = replies.filter((reply) => reply.says === says);
  return { n: of.length, takenForBare: of.filter(({ text }) => isBare(text)).length };
};
process.stdout.write(`${JSON.stringify({ onlyJudge: taken(false), sayWhatIsWanted: taken(true) })}\n`);
