// The auditor's finding once all that was begun has come to its end.
// In: a ledger and the log. Out: what is still lost, doubled or mixed up after a bounded wait; nothing when all is well.

import { until } from '@backtalk/kit/testing';
import { audit } from './audit.js';
import type { LogBook } from './fact-log.js';
import type { LedgerRow } from './ledger.js';

/** What is on its way arrives within this; what is doubled stays doubled. */
const arrivesWithinMs = 40_000;

export async function audited(book: LogBook, ledger: readonly LedgerRow[]): Promise<string[]> {
  let problems: string[] = [];
  const isClean = async () => {
    problems = audit({ ledger, log: await book.read() });
    return problems.length === 0;
  };
  await until(isClean, { what: 'A clean audit', timeoutMs: arrivesWithinMs, everyMs: 300 }).catch(() => undefined);
  return problems;
}
