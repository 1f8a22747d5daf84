// The drill: an installation is copied while people talk to it and it learns, and another goes on from the copy.
import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { TemporaryDirectory, until } from '@backtalk/kit/testing';
import { afterAll, expect, it } from 'vitest';
import { FailureRig } from '../failures/rig.js';
import { audited } from '../loop/audited.js';
import { startCrowd } from '../loop/crowd.js';
import { LogBook } from '../loop/fact-log.js';
import type { LedgerRow } from '../loop/ledger.js';
import { root, startTestMachine } from '../loop/machine.js';

const run = promisify(execFile);
const copies = new TemporaryDirectory('backup-drill');
const command = join(root, 'services', 'cli', 'bin', 'backtalk.mjs');
const learnsFast = { trainer: { BACKTALK_RECIPE_SET: 'effective=8,effectiveMin=8' } };

afterAll(() => {
  copies.remove();
});

function numberOf(version: string): number {
  return Number(version.replace('backtalk-v', ''));
}

/** What a copy owes to clients: every answer that was finished before it was taken. Of later ones it may hold any part. */
function owed(rows: readonly LedgerRow[], before: ReadonlySet<string>): LedgerRow[] {
  return rows.map((row) => ({ ...row, finished: row.finished && before.has(row.turn) }));
}

it('a copy taken under load goes on with the same versions, every turn before it, and learning', async () => {
  const folder = copies.join('copy');
  const rig = await FailureRig.start({ environment: learnsFast });
  const before = new Set<string>();
  let copied = 0;
  try {
    await rig.during(async ({ crowd }) => {
      await until(async () => numberOf(await rig.book.stable()) >= 2, { what: 'Two versions', timeoutMs: 60_000 });
      for (const { turn, finished } of crowd.ledger) if (finished) before.add(turn);
      copied = numberOf(await rig.book.stable());
      const { stdout } = await run(command, ['--json', '--data', rig.machine.folder, 'backup', '--to', folder]);
      expect(JSON.parse(stdout)).toMatchObject({ format: 1, folder });
    });
  } finally {
    await rig.stop();
  }

  const second = await startTestMachine({
    engine: 'stand-in',
    training: 'stand-in',
    restore: folder,
    pace: { tokenMs: 10, answerTokens: 20 },
    environment: learnsFast,
  });
  try {
    const book = await LogBook.open(second);
    await until(async () => numberOf(await book.stable()) >= copied, { what: 'The copied version', timeoutMs: 60_000 });
    const found = numberOf(await book.stable());
    const crowd = startCrowd({ gateway: second.gateway, seed: 77, clients: 4, corrects: 1 });
    await until(async () => numberOf(await book.stable()) > found, { what: 'A new version', timeoutMs: 60_000 });
    const ledger = [...owed(rig.ledger, before), ...(await crowd.stop())];
    expect(before.size).toBeGreaterThan(10);
    expect(await audited(book, ledger)).toEqual([]);
    await book.close();
  } finally {
    await second.stop();
  }
});
