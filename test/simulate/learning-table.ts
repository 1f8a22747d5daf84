// The table and the curve of a learning run: one row a version, beside the rows to compare with.
import { plot } from 'asciichart';
import type { Output } from '@backtalk/cli';
import type { Scores } from './scorer/scores.js';

export interface LearningRow {
  /** A version's name, or `base`, `base shown the hint`, `base cut to its first sentence`, `hinted answers shuffled`. */
  readonly name: string;
  readonly kind: 'version' | 'comparison';
  readonly sessions: number;
  readonly scores: Scores;
  /** Nats an answer; undefined where it was not measured. */
  readonly kl: number | undefined;
}

const header = ['row', 'sessions', 'obeys', 'hit@1', 'headline', 'KL/answer', 'empty', 'looping', 'echo'];
const curveHeight = 10;

function share(value: number): string {
  return value.toFixed(2);
}

export function cells({ name, sessions, scores, kl, kind }: LearningRow): string[] {
  return [
    name,
    kind === 'version' ? String(sessions) : '',
    share(scores.obeys),
    share(scores.hit),
    share(scores.headline),
    kl === undefined ? '' : kl.toFixed(1),
    share(scores.empty),
    share(scores.looping),
    share(scores.echo),
  ];
}

export function printTable(output: Output, rows: readonly LearningRow[]): void {
  output.table(header, rows.map(cells));
}

/** Headline by version, with the base's first. */
export function printCurve(output: Output, rows: readonly LearningRow[]): void {
  const base = rows.find(({ name }) => name === 'base');
  const versions = rows.filter(({ kind }) => kind === 'version');
  if (versions.length === 0) return;
  const points = [...(base === undefined ? [] : [base]), ...versions].map(({ scores }) => scores.headline);
  output.line('');
  output.line(
    `headline by version, from ${base === undefined ? (versions[0]?.name ?? '') : 'the base'} to ${versions.at(-1)?.name ?? ''}`,
  );
  output.line(
    plot(points.length > 1 ? points : [...points, ...points], {
      height: curveHeight,
      min: 0,
      max: Math.max(1, ...points),
    }),
  );
}
