// The target of a learning run, and whether it was met. By the last version the mean headline of the last three is at least
// 0.7 of that of the base shown the hint in each seed, and 0.8 on average; the mean of two neighbours never falls more than
// 0.15 below the best such mean; at most 5 % of answers are empty or looping.
import type { Measured, SeedRun } from './learning-events.js';

export interface RunFigures {
  readonly ceiling: number;
  readonly lastThree: number;
  readonly ratio: number;
  /** How far the mean of two neighbouring versions fell below the best such mean before it. */
  readonly fall: number;
  readonly degenerate: number;
  readonly summary: string;
}

const mean = (values: readonly number[]) => values.reduce((sum, value) => sum + value, 0) / Math.max(1, values.length);

export function largestFall(headlines: readonly number[]): number {
  const pairs = headlines.slice(1).map((value, index) => (value + (headlines[index] ?? value)) / 2);
  let best = Number.NEGATIVE_INFINITY;
  let fall = 0;
  for (const pair of pairs) {
    best = Math.max(best, pair);
    fall = Math.max(fall, best - pair);
  }
  return fall;
}

export function judgeRun({ rows }: SeedRun): RunFigures {
  const versions = rows.filter(({ kind }) => kind === 'version');
  const ceiling = rows.find(({ name }) => name === 'base shown the hint')?.scores.headline ?? 0;
  const headlines = versions.map(({ scores }) => scores.headline);
  const lastThree = mean(headlines.slice(-3));
  const last = versions.at(-1)?.scores;
  const figures = {
    ceiling,
    lastThree,
    ratio: ceiling === 0 ? 0 : lastThree / ceiling,
    fall: largestFall(headlines),
    degenerate: (last?.empty ?? 0) + (last?.looping ?? 0),
  };
  const summary = `headline ${lastThree.toFixed(2)} of ${ceiling.toFixed(2)} (ratio ${figures.ratio.toFixed(2)}), fall ${figures.fall.toFixed(2)}, empty or looping ${(figures.degenerate * 100).toFixed(0)} %`;
  return { ...figures, summary };
}

function row({ name, kind, sessions, scores, kl }: Measured): string {
  const shares = [scores.obeys, scores.hit, scores.headline].map((value) => value.toFixed(2)).join('   ');
  return `  ${name.padEnd(32)} ${(kind === 'version' ? String(sessions) : '').padStart(8)}   ${shares}   ${kl === undefined ? '' : kl.toFixed(1)}`;
}

export function printRuns(runs: readonly SeedRun[], say: (line: string) => void): void {
  for (const run of runs) {
    say('');
    say(`${`${run.user}, seed ${run.seed}`.padEnd(34)} sessions   obeys  hit@1  headline  KL/answer`);
    for (const measured of run.rows) say(row(measured));
  }
  const figures = runs.map(judgeRun);
  const ratios = figures.map(({ ratio }) => ratio);
  const verdict = (met: boolean) => (met ? 'met' : 'MISSED');
  say('');
  say('target                                                        figure             ');
  say(
    `each run:  last three ≥ 0.70 × base shown the hint            ${ratios.map((ratio) => ratio.toFixed(2)).join(', ')}   ${verdict(ratios.every((ratio) => ratio >= 0.7))}`,
  );
  say(
    `mean over runs ≥  0.80 ×                                      ${mean(ratios).toFixed(2)}   ${verdict(mean(ratios) >= 0.8)}`,
  );
  say(
    `two neighbours never > 0.15 below the best two                ${figures.map(({ fall }) => fall.toFixed(2)).join(', ')}   ${verdict(figures.every(({ fall }) => fall <= 0.15))}`,
  );
  say(
    `empty or looping answers ≤ 5 %                                ${figures.map(({ degenerate }) => (degenerate * 100).toFixed(0)).join(', ')} %   ${verdict(figures.every(({ degenerate }) => degenerate <= 0.05))}`,
  );
  say('');
  say('two dozen answers of the last version, as they are:');
  for (const answer of (runs.at(-1)?.answers ?? []).slice(0, 24)) say(`  ${answer}`);
}
