// The auditor's finding once all that was begun has come to its end.
// In: a ledger and the log. Out: what is still lost, doubled or mixed up after a bounded wait without progress; nothing when all is well.
import { until } from '@backtalk/kit/testing';
import { audit } from './audit.js';
import type { LogBook } from './fact-log.js';
import type { LedgerRow } from './ledger.js';

/** What is on its way moves on within this; what is doubled stays doubled. */
const movesWithinMs = 40_000;
/** However slow the machine, and whatever still moves. */
const arrivesWithinMs = 240_000;

export async function audited(book: LogBook, ledger: readonly LedgerRow[]): Promise<string[]> {
  let problems: string[] = [];
  let seen = '';
  let movedMs = performance.now();
  const isOver = async () => {
    const log = await book.read();
    problems = audit({ ledger, log });
    const moves = [
      problems.length,
      ...Object.values(log).map((facts: unknown) => Array.isArray(facts) && facts.length),
    ];
    if (String(moves) !== seen) [seen, movedMs] = [String(moves), performance.now()];
    return problems.length === 0 || performance.now() - movedMs > movesWithinMs;
  };
  await until(isOver, { what: 'An audit', timeoutMs: arrivesWithinMs, everyMs: 300 }).catch(() => undefined);
  return problems;
}
