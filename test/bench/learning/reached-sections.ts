// The sections of the document that hold one wish against itself, learned in other ways: by each method, and from rewards alone.
import { lineChart } from './chart.js';
import { aloneOf, baseOf, versionsOf } from './findings.js';
import type { Row, UnitResult } from './result.js';
import { atEnd, axes, labelOf, ofRun, seriesOf, share, table, type Section } from './section.js';

const reachedColumns = ['headline by version', 'obeys', 'hit', 'KL to the base (answers)'];
/** Beside a figure that was measured before the answers were sampled as they are scored. */
const asBefore = '†';

/** Nats an answer, and on how many of them that rests. */
function klOf({ kl, klAnswers }: Pick<Row, 'kl' | 'klAnswers'>): string {
  if (kl === undefined) return '–';
  return `${kl.toFixed(1)} ${klAnswers === undefined ? asBefore : `(${String(klAnswers)})`}`;
}

/** What the figures of a table mean, under it. */
function aboutKl(rows: readonly (readonly string[])[]): string[] {
  const hasBefore = rows.some((row) => row.some((cell) => cell.endsWith(asBefore)));
  const about =
    'KL to the base: nats an answer, the mean over as many answers as stand beside it, sampled and scored at temperature 1.';
  const before = `${asBefore} Measured before: over 16 answers that were sampled at temperature 0.8 and scored at 1, which gives the KL of neither.`;
  return ['', hasBefore ? `${about} ${before}` : about];
}

/** The last version's but for the headline. */
function reachedBy(result: UnitResult, of: string): string[] {
  const versions = versionsOf(result, of);
  const last = versions.at(-1);
  const climb = versions.map((row) => `v${String(row.step)} ${share(row.scores.headline)}`).join(' · ');
  return [climb, share(last?.scores.obeys), share(last?.scores.hit), klOf(last ?? {})];
}

/** Rewards of an environment, and nothing said. */
export function attempted(results: readonly UnitResult[], own: readonly UnitResult[]): Section | undefined {
  if (own.length === 0) return undefined;
  const rows = own.map((result) => {
    const [task = '', reward = ''] = result.name.split(', ');
    const [talk] = result.talk;
    const cameThrough = atEnd(result, `${String(talk?.praised ?? 0)} of ${String(talk?.sessions ?? 0)}`);
    const base = share(baseOf(results, task, result)?.scores.headline);
    return [task, `${reward}${ofRun(result)}`, cameThrough, base, ...reachedBy(result, task)];
  });
  const header = ['task', 'reward', 'attempts that came through', 'base', ...reachedColumns];
  return { title: '(j) Attempts at tasks', lines: [...table(header, rows), ...aboutKl(rows)] };
}

/** One wish by each method, the combined one of part (a) first. */
export function sideBySide(results: readonly UnitResult[], own: readonly UnitResult[]): Section | undefined {
  const [first] = own;
  if (first === undefined) return undefined;
  const wishOf = ({ name }: UnitResult) => name.split(', ')[0] ?? name;
  const combined = new Set(own.flatMap((one) => aloneOf(results, wishOf(one), one) ?? []));
  const all = [...combined, ...own];
  const rows = all.map((result) => {
    const wish = wishOf(result);
    const label = result.part === 'a' ? `${labelOf(result)}, combined` : labelOf(result);
    const seconds = result.steps.map(({ measurements }) => measurements['seconds'] ?? 0);
    const mean = seconds.reduce((sum, one) => sum + one, 0) / Math.max(1, seconds.length);
    return [label, ...reachedBy(result, wish), mean.toFixed(0)];
  });
  const series = all.map((result) =>
    seriesOf(results, result, wishOf(result), result.part === 'a' ? 'combined' : result.name),
  );
  return {
    title: '(h) Methods side by side',
    lines: [...table(['method', ...reachedColumns, 'seconds a step'], rows), ...aboutKl(rows)],
    chart: { file: 'methods.svg', svg: lineChart(axes('One wish by each method'), series) },
  };
}
