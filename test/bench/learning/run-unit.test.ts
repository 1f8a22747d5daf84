import { TemporaryDirectory } from '@backtalk/kit/testing';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { ResultStore, type Row, type UnitResult } from './result.js';
import { runUnit } from './run-unit.js';
import type { Found } from './unit.js';

const key = { part: 'a', name: 'one', seed: 1, madeFrom: 'of one' };
const row: Row = {
  of: 'one',
  block: 'one',
  step: 1,
  name: 'backtalk-v1',
  scores: { obeys: 1, hit: 1, headline: 1, empty: 0, looping: 0, echo: 0 },
};
const step = { version: 'backtalk-v1', closed: 'full', samples: 8, effective: 8, hinted: 8, why: '', measurements: {} };
const nothing = () => undefined;
const quiet = { progress: nothing, settle: nothing };

let folder: TemporaryDirectory;
let store: ResultStore;

beforeEach(() => {
  folder = new TemporaryDirectory('run-unit');
  store = new ResultStore(folder.path);
});
afterEach(() => {
  folder.remove();
});

const soFar = (): UnitResult => ({
  ...key,
  rows: [row],
  steps: [],
  lessons: [],
  talk: [],
  answers: [],
  minutes: 1,
  load: [0, 0],
  processor: '2 × a processor',
  day: '2026-11-22',
  stopped: true,
});

/** A unit that keeps what it measures, and then comes to this end. */
const run = (end: () => Promise<Found>) =>
  runUnit(
    {
      ...key,
      run: () => {
        store.keep(soFar());
        return end();
      },
    },
    store,
    quiet,
  );

const found = (stage: string): Found => ({
  rows: [row],
  steps: [{ ...step, stage }],
  lessons: [],
  talk: [],
  answers: [],
});

describe('a unit of the learning experiment', () => {
  it('what a unit found is kept with what it was made from', async () => {
    expect(await run(() => Promise.resolve(found('stable')))).toBe(true);
    expect(store.find(key)).toMatchObject({ madeFrom: 'of one', stopped: false });
  });

  it('a unit that fails leaves nothing, also not what it had measured', async () => {
    expect(await run(() => Promise.reject(new RangeError('no machine')))).toBe(false);
    expect(store.all()).toEqual([]);
  });

  it('a unit whose steps were all given up leaves nothing', async () => {
    expect(await run(() => Promise.resolve(found('abandoned')))).toBe(false);
    expect(store.all()).toEqual([]);
  });

  it('what an earlier run of a unit measured until it was stopped stays, where a later one fails before it measures', async () => {
    store.keep(soFar());
    store = new ResultStore(folder.path);
    const fails = { ...key, run: () => Promise.reject(new RangeError('no machine')) };
    expect(await runUnit(fails, store, quiet)).toBe(false);
    expect(store.all()).toHaveLength(1);
  });
});
