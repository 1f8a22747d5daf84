import { BacktalkError, type FactName, type FactPublisher, type FactReader, type ReadOptions } from '@backtalk/kit';
import { BatchClosed } from '@backtalk/proto/facts';
import { expect, it } from 'vitest';

import { Ledger } from './ledger.js';

const gone = new BacktalkError({ code: 'blob_missing', retry: 'later', message: 'It is gone.' });
const signal = new AbortController().signal;

/** A log of one batch, and of a fact that cannot be read. */
function ledgerWith(lost: FactName): Ledger {
  const message = BatchClosed.fromPartial({ number: 1, version: 'p-v1', samples: [{ turn: 't1' }] });
  const reader = {
    async *headers() {},
    async *read(_: unknown, { onUnreadable }: ReadOptions<FactName>) {
      yield await Promise.resolve({ name: 'batchClosed', message, sequence: 1, timeMs: 0 });
      onUnreadable?.(gone, 7, lost);
    },
  };
  return new Ledger('p', reader as unknown as FactReader, {} as unknown as FactPublisher);
}

it('a trained version whose fact is lost keeps no ledger from being read: its step is taken again', async () => {
  const { chain } = await ledgerWith('weightsTrained').read(signal);
  expect([chain.open()?.version, chain.trainedSequence()]).toEqual(['p-v1', 7]);
});

it('any other fact that is lost ends the reading of the ledger, which would be another one without it', async () => {
  await expect(ledgerWith('weightsStaged').read(signal)).rejects.toBe(gone);
});
