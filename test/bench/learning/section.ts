// What sections of the document are made of: cells, tables, curves. In: figures. Out: text, the same for the same figures.
import type { Series } from './chart.js';
import { baseOf, ceilingOf, versionsOf } from './findings.js';
import type { Row, UnitResult } from './result.js';

export const share = (value: number | undefined) => (value === undefined ? '–' : value.toFixed(2));
export const ratio = (value: number | undefined, of: number | undefined) =>
  value === undefined || of === undefined || of === 0 ? '–' : (value / of).toFixed(2);
/** How a unit's name goes on. */
export const ofRun = ({ seed, stopped }: UnitResult) =>
  `${seed === 1 ? '' : `, seed ${String(seed)}`}${stopped ? ', stopped before its end' : ''}`;
export const labelOf = (result: UnitResult) => `${result.name}${ofRun(result)}`;

export interface Section {
  readonly title: string;
  readonly lines: readonly string[];
  readonly chart?: { readonly file: string; readonly svg: string };
}

/** What is asked at the end of a run alone, of one that came to none. */
export const atEnd = ({ stopped }: UnitResult, value: string): string => (stopped ? 'not known' : value);

export const table = (header: readonly string[], rows: readonly (readonly string[])[]) => [
  `| ${header.join(' | ')} |`,
  `|${header.map(() => ' --- |').join('')}`,
  ...rows.map((row) => `| ${row.join(' | ')} |`),
];

export function seriesOf(results: readonly UnitResult[], result: UnitResult, of: string, name: string): Series {
  const start = baseOf(results, of, result);
  const points = versionsOf(result, of).map((row) => [row.step, row.scores.headline] as const);
  const ceiling = ceilingOf(results, of, result);
  const all = start === undefined ? points : [[0, start.scores.headline] as const, ...points];
  return { name, points: all, ...(ceiling === undefined ? {} : { ceiling }) };
}

export const axes = (title: string) => ({ title, x: 'steps of the policy', y: 'headline', top: 1 });
export const change = (row: Row | undefined, base: Row | undefined) =>
  row?.reference === undefined || base?.reference === undefined
    ? '–'
    : `${row.reference.nll >= base.reference.nll ? '+' : '−'}${Math.abs(row.reference.nll - base.reference.nll).toFixed(2)}`;
