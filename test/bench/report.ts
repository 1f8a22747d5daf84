// The table of all figures, and the same as JSON. In: outcomes of benchmarks. Out: lines of text; nothing is written here.
import type { Aim, Figure } from './benchmark.js';
import { isMet, summaryOf } from './statistics.js';

export interface Outcome {
  readonly benchmark: string;
  readonly seconds: number;
  readonly figures: readonly Figure[];
  readonly notes: readonly string[];
  /** Why it could not be run; empty when it could. */
  readonly failure: string;
}

export interface Surroundings {
  readonly cpu: string;
  readonly cores: number;
  readonly node: string;
  /** Mean of the last minute, before the first benchmark and after the last. */
  readonly loadBefore: number;
  readonly loadAfter: number;
}

const columns = ['benchmark', 'figure', 'median', 'range', 'runs', 'aim', ''] as const;
const numeric: ReadonlySet<number> = new Set([2, 3, 4]);

export function tableOf(outcomes: readonly Outcome[], surroundings: Surroundings): string[] {
  const rows = outcomes.flatMap(rowsOf);
  const widths = columns.map((title, at) => Math.max(title.length, ...rows.map((row) => (row[at] ?? '').length)));
  const line = (row: readonly string[]) =>
    widths
      .map((width, at) => (numeric.has(at) ? (row[at] ?? '').padStart(width) : (row[at] ?? '').padEnd(width)))
      .join('  ')
      .trimEnd();
  return [
    describe(surroundings),
    '',
    line(columns),
    line(widths.map((width) => '-'.repeat(width))),
    ...rows.map(line),
    ...outcomes.flatMap(notesOf),
  ];
}

export function jsonOf(outcomes: readonly Outcome[], surroundings: Surroundings): string {
  const benchmarks = outcomes.map(({ figures, ...rest }) => ({
    ...rest,
    figures: figures.map((figure) => ({
      ...figure,
      ...summaryOf(figure.values),
      ...(figure.aim && { met: isMet(figure.aim, summaryOf(figure.values).median) }),
    })),
  }));
  return JSON.stringify({ ...surroundings, benchmarks }, null, 2);
}

function describe({ cpu, cores, node, loadBefore, loadAfter }: Surroundings): string {
  const load = `load average ${loadBefore.toFixed(1)} before, ${loadAfter.toFixed(1)} after`;
  return `${cpu} · ${cores} cores · Node ${node} · ${load}`;
}

function rowsOf({ benchmark, figures, failure }: Outcome): string[][] {
  const refusal = failure === '' ? [] : [[benchmark, 'could not be run: see below', '', '', '', '', '']];
  return [...refusal, ...figures.map((figure) => rowOf(benchmark, figure))];
}

function rowOf(benchmark: string, { name, unit, values, aim }: Figure): string[] {
  const { median, least, most } = summaryOf(values);
  const told = [`${written(median)} ${unit}`, `${written(least)} – ${written(most)}`, String(values.length)];
  if (aim === undefined) return [benchmark, name, ...told, '', ''];
  return [benchmark, name, ...told, wordsOf(aim), isMet(aim, median) ? 'met' : 'missed'];
}

function wordsOf(aim: Aim): string {
  return 'atMost' in aim ? `≤ ${written(aim.atMost)}` : `≥ ${written(aim.atLeast)}`;
}

/** Three digits that count. */
export function written(value: number): string {
  if (!Number.isFinite(value)) return '?';
  const digits = Math.abs(value) >= 100 ? 0 : Math.abs(value) >= 10 ? 1 : 2;
  return Number.isInteger(value) ? String(value) : value.toFixed(digits);
}

function notesOf({ benchmark, notes, failure, seconds }: Outcome): string[] {
  const words = failure === '' ? notes : [...notes, `could not be run: ${failure}`];
  return ['', `${benchmark} (${seconds.toFixed(0)} s)`, ...words.map((note) => `  ${note}`)];
}
