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
  /** How requests of the other client failed. */
  readonly failed: readonly string[];
}

/** What an attack may add to the 99th percentile of another client's latency. */
const addedMsMax = 50;

export function latencyOf(answeredMs: readonly number[]): Latency {
  const at = (share: number) => percentile(answeredMs, share);
  return { p50: at(0.5), p99: at(0.99), longest: at(1), answers: answeredMs.length };
}

/** It did not reach what it was after, and others were answered meanwhile as soon as they are owed. */
export function isHeld(row: Row): boolean {
  if (!row.held || row.unmeasured !== undefined) return row.held;
  return row.failed.length === 0 && addedBy(row) <= addedMsMax;
}

export function summaryOf(row: Row): string {
  return `${isHeld(row) ? '✓' : '✗'} ${row.name}: ${row.now}; ${latencyCells(row).join(', ')}; ${coresCell(row)}`;
}

export function tableOf(rows: readonly Row[]): string {
  const head = [
    '',
    'attack',
    'before',
    'now',
    'calm p50 / p99',
    'attacked p50 / p99',
    'added p99',
    'of it by the same load elsewhere',
    'cores in use',
  ];
  const cells = rows.map((row) => [
    isHeld(row) ? '✓' : '✗',
    row.name,
    row.before,
    row.now,
    ...latencyCells(row),
    coresCell(row),
  ]);
  return [head, head.map(() => '---'), ...cells].map((row) => `| ${row.join(' | ')} |`).join('\n');
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
  const refused = failed.length === 0 ? '' : `, ${String(failed.length)} failed: ${failed[0] ?? ''}`;
  return [
    cell(calm),
    `${cell(attacked)}${few}${refused}`,
    `${addedBy(row).toFixed(0)} ms`,
    `${(control.p99 - calm.p99).toFixed(0)} ms`,
  ];
}

function coresCell({ cores, unmeasured }: Row): string {
  if (unmeasured !== undefined) return '–';
  const [attacker, parts, gateway, all] = [cores.attacker, cores.parts, cores.gateway, cores.all].map((one) =>
    one.toFixed(1),
  );
  return `attacker ${attacker ?? ''}, installation ${parts ?? ''} (gateway ${gateway ?? ''}), machine ${all ?? ''} of ${String(cores.of)}`;
}
