import { BatchClosed, WeightsTrained } from '@backtalk/proto/facts';
import { describe, expect, it } from 'vitest';

import { BatchChain, costsATry } from './batch-chain.js';

function batch(number: number, version: number): BatchClosed {
  const sample = { turn: `t${number}` };
  return BatchClosed.fromPartial({
    policy: 'p',
    number,
    version: `p-v${version}`,
    parent: 'p-v0',
    samples: [sample],
    why: 'full',
  });
}

function settles(number: number, why: string): BatchClosed {
  return BatchClosed.fromPartial({ policy: 'p', number, why, settled: [{ turn: `s${number}`, reason: why }] });
}

function trained(number: number): WeightsTrained {
  return WeightsTrained.fromPartial({ policy: 'p', batch: number, version: `p-v${number}` });
}

describe('the samples of the newest versions', () => {
  it('questions of the trainer’s own are nobody’s share', () => {
    const chain = new BatchChain('p');
    const { samples, ...rest } = batch(1, 1);
    const rehearsed = BatchClosed.fromPartial({ samples: [{ turn: 'rehearsal_1_1', question: 1 }] }).samples;
    chain.closed({ ...rest, samples: [...samples, ...rehearsed] }, 10);
    expect(chain.recent().map((of) => of.map(({ turn }) => turn))).toEqual([['t1']]);
  });
});

describe('the window of the newest versions', () => {
  const turnsOf = (chain: BatchChain) => chain.recent().flatMap((of) => of.map(({ turn }) => turn));
  const closing = (...facts: readonly BatchClosed[]): BatchChain => {
    const chain = new BatchChain('p');
    facts.forEach((fact, at) => chain.closed(fact, at + 1));
    return chain;
  };
  const nine = Array.from({ length: 9 }, (_, at) => batch(at + 1, at + 1));

  it('what is repeated counts once', () => {
    const again = { ...batch(10, 10), repeats: 9, first: 9 };
    expect(turnsOf(closing(...nine, again))).toEqual(['t3', 't4', 't5', 't6', 't7', 't8', 't10']);
  });

  it('a batch that is given up makes room for the one that it had pushed out', () => {
    expect(turnsOf(closing(...nine, settles(10, 'step_failed')))).toEqual(['t2', 't3', 't4', 't5', 't6', 't7', 't8']);
  });
});

describe('the open batch', () => {
  it('the open batch is the one that was closed and not trained', () => {
    const chain = new BatchChain('p');
    expect(chain.open()).toBeUndefined();
    chain.closed(batch(1, 1), 10);
    expect(chain.open()?.number).toBe(1);
    chain.trained(trained(1), 11);
    expect(chain.open()).toBeUndefined();
  });

  it('the open batch stays open while other turns are settled', () => {
    const chain = new BatchChain('p');
    chain.closed(batch(1, 1), 10);
    chain.closed(settles(2, 'settled'), 11);
    expect(chain.open()?.number).toBe(1);
  });

  it.each(['step_failed', 'burned_parent'])('the open batch is given up by a fact that says %s', (why) => {
    const chain = new BatchChain('p');
    chain.closed(batch(1, 1), 10);
    chain.closed(settles(2, why), 11);
    expect(chain.open()).toBeUndefined();
    expect(chain.unreadReport()).toBeUndefined();
    expect(chain.nextNumber()).toBe(3);
  });

  it('the open batch is not changed by a fact that is read twice', () => {
    const chain = new BatchChain('p');
    chain.closed(batch(1, 1), 10);
    chain.trained(trained(1), 11);
    chain.closed(batch(2, 2), 12);
    chain.closed(batch(1, 1), 10);
    expect(chain.open()?.number).toBe(2);
    expect(chain.batchSequence()).toBe(12);
  });
});

describe('names', () => {
  it('version names are never reused: the version of a failed batch leaves a gap', () => {
    const chain = new BatchChain('p');
    chain.closed(batch(1, 1), 10);
    chain.closed(settles(2, 'step_failed'), 11);
    expect(chain.nextVersionNumber()).toBe(2);
  });

  it('version names follow each other although facts that only settle have numbers, too', () => {
    const chain = new BatchChain('p');
    chain.closed(settles(1, 'settled'), 9);
    chain.closed(batch(2, 1), 10);
    expect(chain.nextVersionNumber()).toBe(2);
  });
});

describe('the report of a step', () => {
  it('a step’s report is read by the next fact only', () => {
    const chain = new BatchChain('p');
    chain.closed(batch(1, 1), 10);
    expect(chain.unreadReport()).toBeUndefined();
    chain.trained(trained(1), 11);
    expect(chain.unreadReport()?.trained.batch).toBe(1);
    chain.closed(settles(2, 'settled'), 12);
    expect(chain.unreadReport()).toBeUndefined();
  });

  it('a fact that was closed while the step waited has not read its report', () => {
    const chain = new BatchChain('p');
    chain.closed(batch(1, 1), 10);
    chain.closed(settles(2, 'lessons'), 11);
    chain.trained(trained(1), 12);
    expect(chain.unreadReport()).toMatchObject({ batch: { number: 1 }, trained: { batch: 1 } });
    chain.closed(settles(3, 'settled'), 13);
    expect(chain.unreadReport()).toBeUndefined();
  });
});

describe('what costs a batch a try', () => {
  it('a training service that is away, or not set up for the recipe or the parent, and a store that takes nothing, cost no batch a try', () => {
    const codes = ['service_unavailable', 'recipe_not_honoured', 'parent_elsewhere'];
    expect(codes.filter(costsATry)).toEqual([]);
    const ofStores = ['blob_store_full', 'blob_store_failed', 'blob_missing', 'stream_full', 'broker_unavailable'];
    expect(ofStores.filter(costsATry)).toEqual([]);
    expect(costsATry('service_refused')).toBe(true);
  });
});

describe('the fact of a trained version that is lost', () => {
  const last = (...lost: readonly number[]): BatchChain => {
    const chain = new BatchChain('p');
    chain.closed(batch(1, 1), 10);
    chain.trained(trained(1), 20);
    chain.closed(batch(2, 2), 30);
    for (const sequence of lost) chain.lost(sequence);
    return chain;
  };

  it('a version whose fact is lost is made again, and the log takes it after the lost one', () => {
    expect(last(40).open()?.version).toBe('p-v2');
    expect(last(40).trainedSequence()).toBe(40);
  });

  it('a version whose fact is lost is not made again after a later one', () => {
    const chain = last(15);
    chain.trained(trained(2), 50);
    expect([chain.open(), chain.trainedSequence()]).toEqual([undefined, 50]);
  });
});
