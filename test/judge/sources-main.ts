// `node test/dist/judge/sources-main.js`: how good the judge is on a hand that it has not seen. Words are learned from all labelled sources
// but one, and measured on that one, for each in turn; the weights of the words, too, come from the others. It writes a line for each, and one of the judge that is
// here on wishes about form that it was not fitted to.
import { createReader, readReader } from '@backtalk/judge';
import { evaluateTurns, type TurnsReport } from './evaluate-turns.js';
import { fitWeights, readUnseen } from './fit.js';
import { grouped, readItems } from './items.js';
import { readSamples } from './sources.js';
import { measureWishes } from './wishes.js';

const samples = readSamples(readItems());
const { words, tables } = readUnseen(samples);
for (const [source, turns] of grouped(samples, (sample) => sample.source)) {
  const table = tables.get(source);
  if (table === undefined) continue;
  const weights = fitWeights(new Map([...words].filter(([sample]) => sample.source !== source)));
  const [report] = await evaluateTurns({ turns, voting: undefined, reader: createReader(table, weights) });
  if (report !== undefined) process.stdout.write(`${JSON.stringify({ source, ...summaryOf(report) })}\n`);
}

const { n, heard, takenForSatisfied } = measureWishes(readReader());
process.stdout.write(
  `${JSON.stringify({ wishes: n, heard: rounded(heard), takenForSatisfied: rounded(takenForSatisfied) })}\n`,
);

function summaryOf(report: TurnsReport) {
  const { n, interval, confusion, hints, injections, satisfiedAsCorrection } = report;
  const { satisfied, neutral, correction } = confusion.correction;
  const corrections = Math.max(1, satisfied + neutral + correction);
  return {
    n,
    balancedAccuracy: rounded(report.balancedAccuracy),
    interval: [rounded(interval.low), rounded(interval.high)],
    satisfiedAsCorrection: rounded(satisfiedAsCorrection),
    correctionRecall: rounded(correction / corrections),
    correctionAsSatisfied: rounded(satisfied / corrections),
    hintRecall: rounded(hints.recall),
    injections: `${String(injections.flipped)} of ${String(injections.n)}`,
  };
}

function rounded(value: number): number {
  return Math.round(value * 1000) / 1000;
}
