// An installation that an earlier version of Backtalk left goes on under this one: same facts, same versions, new lessons.
import { cpSync } from 'node:fs';
import { join } from 'node:path';
import { readManifest } from '@backtalk/kit';
import { TemporaryDirectory, until } from '@backtalk/kit/testing';
import { afterAll, expect, it } from 'vitest';
import { audited } from '../loop/audited.js';
import { startCrowd } from '../loop/crowd.js';
import { LogBook, type FactLog } from '../loop/fact-log.js';
import { hashOf, type LedgerRow } from '../loop/ledger.js';
import { root, startTestMachine } from '../loop/machine.js';

const copies = new TemporaryDirectory('upgrade');

/** What it was recorded with: versions fit no other base. */
const recordedBase = 'smollm2-135m-instruct';

afterAll(() => {
  copies.remove();
});

/** Clients of whom nothing is known but that they asked. */
function forgotten(log: FactLog): LedgerRow[] {
  return log.completed.map(({ message: { turn } }) => ({
    client: '',
    turn,
    weights: '',
    status: 0,
    bytes: 0,
    hash: hashOf(''),
    finished: false,
    error: '',
    continues: '',
    optedOut: false,
  }));
}

it('an installation of an earlier version serves its versions, keeps its facts and learns on', async () => {
  const old = copies.join('old');
  cpSync(join(root, 'test', 'contracts', 'installation'), old, { recursive: true });
  const machine = await startTestMachine({
    engine: 'stand-in',
    training: 'stand-in',
    restore: old,
    pace: { tokenMs: 10, answerTokens: 12 },
    environment: {
      all: { BACKTALK_BASE_MODEL: recordedBase, BACKTALK_ENGINE_MODEL_NAME: recordedBase },
      trainer: { BACKTALK_RECIPE_SET: 'effective=8,effectiveMin=8' },
    },
  });
  const book = await LogBook.open(machine);
  try {
    const before = await book.read();
    const kept = readManifest(old).streams.find(({ stream }) => stream === 'TURNS')?.messages ?? 0;
    const { opened, completed, continued, judged } = before;
    expect(opened.length + completed.length + continued.length + judged.length).toBeGreaterThanOrEqual(kept - 20);
    expect(opened).toHaveLength(63);
    await until(async () => (await book.stable()) === 'backtalk-v3', { what: 'The old version', timeoutMs: 60_000 });

    const crowd = startCrowd({ gateway: machine.gateway, seed: 5, clients: 4, corrects: 1 });
    const isNext = async () => !['backtalk-v0', 'backtalk-v3'].includes(await book.stable());
    await until(isNext, { what: 'A new version', timeoutMs: 60_000 });
    expect(await audited(book, [...forgotten(before), ...(await crowd.stop())])).toEqual([]);
    const batch = (await book.read()).batches.find(({ message }) => message.version === 'backtalk-v4');
    expect(batch?.message.parent).toBe('backtalk-v3');
  } finally {
    await book.close();
    await machine.stop();
  }
});
