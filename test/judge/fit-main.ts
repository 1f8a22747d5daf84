// `node test/dist/judge/fit-main.js [--check]`: fits the judge's files under services/judge/labelled. With --check nothing is
// written: the command fails where a file is not what it would write.
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { isDeepStrictEqual, parseArgs } from 'node:util';
import type { WordTable, WordWeights } from '@backtalk/judge';
import { repositoryRoot } from '@backtalk/kit/testing';
import { fitWeights, readUnseen } from './fit.js';
import { fitBare } from './fit-bare.js';
import { fitStanding, readStandingMessages } from './fit-standing.js';
import { fitWords } from './fit-words.js';
import { readItems } from './items.js';
import { readSamples } from './sources.js';

const { values: asked } = parseArgs({ options: { check: { type: 'boolean', default: false } } });
const samples = readSamples(readItems());
write('words.json', perLine(fitWords(samples)));
write('bare.json', perLine(fitBare(samples)));
write('standing.json', perLine(fitStanding(readStandingMessages(), samples)));
write('weighing.json', JSON.stringify(fitWeights(readUnseen(samples).words), null, 2));

/** One feature a line: a difference can be read. */
function perLine(fitted: WordTable | WordWeights): string {
  return JSON.stringify(fitted, null, 1).replaceAll(
    /\[\s([^\]]+)\]/g,
    (_, inside: string) => `[${inside.trim().replaceAll(/\s+/g, ' ')}]`,
  );
}

function write(name: string, text: string): void {
  const file = join(repositoryRoot(), 'services/judge/labelled', name);
  if (!asked.check) return writeFileSync(file, `${text}\n`);
  if (isDeepStrictEqual(JSON.parse(readFileSync(file, 'utf8')), JSON.parse(text))) return;
  process.stderr.write(`${name} is not what the labelled sources give; fit-main.js writes it.\n`);
  process.exitCode = 1;
}
