// What came of the attacks, as a table. In: rows. Out: Markdown.
import { percentile } from '../bench/statistics.js';
import type { Attack, Outcome } from './attack.js';
import { answersMin } from './probe.js';

/** The other client's answers while something lasted. */
export interface Latency {
  readonly p50: number;
  readonly p99: number;
  readonly longest: number;
  readonly answers: number;
}

/** Cores in use while an attack lasted. */
export interface CoresUsed {
  readonly attacker: number;
  readonly gateway: number;
  /** All processes of the installation, the gateway with them. */
  readonly parts: number;
  readonly all: number;
  readonly of: number;
}

export interface Row extends Outcome, Pick<Attack, 'name' | 'about' | 'before' | 'unmeasured'> {
  readonly calm: Latency;
  readonly attacked: Latency;
  /** While other processes took as much processor time as the attack. */
  readonly control: Latency;
  readonly cores: CoresUsed;
  /** How requests of the other client failed: an error's code, or a status. */
  readonly failed: readonly string[];
}

/** What an attack may add to the 99th percentile of another client's latency. */
const addedMsMax = 50;

export function latencyOf(answeredMs: readonly number[]): Latency {
  const at = (share: number) => percentile(answeredMs, share);
  return { p50: at(0.5), p99: at(0.99), longest: at(1), answers: answeredMs.length };
}

/**
 * ✓ where it did not reach what it was after, and others were answered meanwhile as soon as they are owed; ≈ where they waited
 * longer, and would have by as much had the same load been elsewhere on the machine.
 */
export function markOf(row: Row): '✓' | '≈' | '✗' {
  if (!row.held) return '✗';
  if (row.unmeasured !== undefined) return '✓';
  if (row.failed.length > 0) return '✗';
  if (addedBy(row) <= addedMsMax) return '✓';
  return row.attacked.p99 - row.control.p99 <= addedMsMax ? '≈' : '✗';
}

export function isHeld(row: Row): boolean {
  return markOf(row) !== '✗';
}

export function summaryOf(row: Row): string {
  return `${markOf(row)} ${row.name}: ${row.now}; ${latencyCells(row).join(', ')}; ${coresCell(row)}`;
}

export function tableOf(rows: readonly Row[]): string {
  const head = [
    '',
    'attack',
    'before',
    'now, to the attacker',
    'other client, calm: p50 / p99',
    'other client, attacked: p50 / p99',
    'added p99',
    'of it by the same load elsewhere',
    'cores in use',
  ];
  const cells = rows.map((row) => [markOf(row), row.name, row.before, row.now, ...latencyCells(row), coresCell(row)]);
  return aligned([head, ...cells]);
}

/** Columns of one width, as the formatter leaves them. */
function aligned([head = [], ...rows]: readonly (readonly string[])[]): string {
  const lengthOf = (cell = '') => [...cell].length;
  const widths = head.map((_, at) => Math.max(3, ...[head, ...rows].map((row) => lengthOf(row[at]))));
  const padded = (row: readonly string[]) =>
    row.map((cell, at) => cell + ' '.repeat((widths[at] ?? 0) - lengthOf(cell)));
  const lines = [padded(head), widths.map((width) => '-'.repeat(width)), ...rows.map(padded)];
  return lines.map((cells) => `| ${cells.join(' | ')} |`).join('\n');
}

const marks = ['<!-- attacks: npm run test:hostile -- --document -->', '<!-- end of attacks -->'] as const;

/** A document with this text between its two marks. */
export function withTable(document: string, text: string): string {
  const [from, to] = marks.map((mark) => document.indexOf(mark));
  if (from === undefined || to === undefined || from < 0 || to < from)
    throw new RangeError(`SECURITY.md has no '${marks[0]}' before '${marks[1]}'.`);
  return `${document.slice(0, from + marks[0].length)}\n\n${text}\n\n${document.slice(to)}`;
}

function addedBy({ calm, attacked }: Row): number {
  return attacked.p99 - calm.p99;
}

function latencyCells(row: Row): readonly string[] {
  const { calm, attacked, control, failed, unmeasured } = row;
  if (unmeasured !== undefined) return ['–', `– (${unmeasured})`, '–', '–'];
  const cell = ({ p50, p99 }: Latency) => `${p50.toFixed(0)} / ${p99.toFixed(0)} ms`;
  const few = attacked.answers < answersMin ? ` of ${String(attacked.answers)} answers` : '';
  const refused = failed.length === 0 ? '' : `, failed: ${countsOf(failed)}`;
  return [
    cell(calm),
    `${cell(attacked)}${few}${refused}`,
    `${addedBy(row).toFixed(0)} ms`,
    `${(control.p99 - calm.p99).toFixed(0)} ms`,
  ];
}

/** `3 × 400, 1 × cut` */
export function countsOf(names: readonly string[]): string {
  const counts = new Map<string, number>();
  for (const name of names) counts.set(name, (counts.get(name) ?? 0) + 1);
  return [...counts].map(([name, count]) => `${String(count)} × ${name}`).join(', ');
}

function coresCell({ cores, unmeasured }: Row): string {
  if (unmeasured !== undefined) return '–';
  const [attacker, parts, gateway, all] = [cores.attacker, cores.parts, cores.gateway, cores.all].map((one) =>
    one.toFixed(1),
  );
  return `attacker ${attacker ?? ''}, installation ${parts ?? ''} (gateway ${gateway ?? ''}), machine ${all ?? ''} of ${String(cores.of)}`;
}
