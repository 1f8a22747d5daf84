// What one exercise with a real engine is: it acts on a running machine, says what it does, and judges what it found.
import type { ProcessSpec } from '@backtalk/deploy';
import type { Output } from '../bench/output.js';
import type { LogBook } from '../loop/fact-log.js';
import type { LedgerRow } from '../loop/ledger.js';
import type { TestMachine } from '../loop/machine.js';

export interface Scene {
  readonly machine: TestMachine;
  readonly book: LogBook;
  /** All that clients saw, whichever exercise they took part in. */
  readonly ledger: LedgerRow[];
  readonly output: Output;
  /** The engine that comes with Backtalk, as this machine would have run it. */
  readonly builtin: ProcessSpec;
}

/** One thing that must hold, and the figure that shows it. */
export interface Finding {
  readonly what: string;
  readonly holds: boolean;
  readonly figure: string;
}

export type Exercise = (scene: Scene) => Promise<readonly Finding[]>;

export function failedOf(rows: readonly LedgerRow[]): LedgerRow[] {
  return rows.filter(({ finished, error, status }) => !finished || error !== '' || status !== 200);
}

export const minute = 60_000;
