// `node test/dist/judge/fit-main.js [--check] [--engine URL --model NAME [--thresholds]]`: fits the judge's files under
// services/judge/labelled. Words and weights without votes need no engine. With one, the weights of that model are
// fitted too, and its thresholds where there are none for the present prompts, or where that is asked. With --check nothing is
// written: the command fails where a file is not what it would write.
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { isDeepStrictEqual, parseArgs } from 'node:util';
import { createEngineClient } from '@backtalk/dialects';
import {
  readCalibrationTable,
  scoredPrompts,
  type CalibrationTable,
  type WordTable,
  type WordWeights,
} from '@backtalk/judge';
import { repositoryRoot } from '@backtalk/kit/testing';
import { castVotes, fitEntry, fitWeights, readUnseen } from './fit.js';
import { fitBare } from './fit-bare.js';
import { fitStanding, readStandingMessages } from './fit-standing.js';
import { fitWords } from './fit-words.js';
import { readItems } from './items.js';
import { readSamples } from './sources.js';

const { values: asked } = parseArgs({
  options: {
    engine: { type: 'string' },
    model: { type: 'string', default: 'smollm2-135m-wishes' },
    thresholds: { type: 'boolean', default: false },
    check: { type: 'boolean', default: false },
  },
});
const items = readItems();
const samples = readSamples(items);
const { words } = readUnseen(samples);
const table: CalibrationTable = { ...readCalibrationTable(), withoutVotes: fitWeights(words) };
write('words.json', perLine(fitWords(samples)));
write('bare.json', perLine(fitBare(samples)));
write('standing.json', perLine(fitStanding(readStandingMessages(), samples)));
write('thresholds.json', JSON.stringify(asked.engine === undefined ? table : await withModel(asked.engine), null, 2));

async function withModel(url: string): Promise<CalibrationTable> {
  const { model } = asked;
  const client = createEngineClient({ dialect: 'vllm', url });
  try {
    const engine = { client, model };
    const prompts = scoredPrompts();
    const isOf = (entry: { model: string; promptDigest: string }) =>
      entry.model === model && entry.promptDigest === prompts.digest;
    const known = asked.thresholds ? undefined : table.entries.find((entry) => isOf(entry));
    const entry = known ?? (await fitEntry(items, prompts, engine, report));
    const votes = await castVotes(items, prompts, { entries: [entry] }, engine, report);
    const fitted = { ...entry, weights: fitWeights(words, votes) };
    // Thresholds of the same model for older prompts hold for nothing any more.
    return { ...table, entries: [...table.entries.filter((other) => other.model !== model), fitted] };
  } finally {
    await client.close();
  }
}

function report(what: string, done: number, all: number): void {
  if (done % 50 === 0 || done === all) process.stderr.write(`${what}: ${String(done)} of ${String(all)}\n`);
}

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
