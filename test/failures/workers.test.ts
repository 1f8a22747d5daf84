import { until } from '@backtalk/kit/testing';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { engineCounts, holdTraining, trainingCounts } from '../loop/controls.js';
import { FailureRig } from './rig.js';

let rig: FailureRig;

beforeAll(async () => {
  rig = await FailureRig.start();
}, 120_000);

afterAll(async () => {
  await rig?.stop();
});

describe('under load', () => {
  it('a training worker that dies in mid-step costs no sample and trains none twice', async () => {
    await holdTraining(rig.machine, true);
    const ledger = await rig.during(async () => {
      await until(async () => (await trainingCounts(rig.machine)).begun.length > 0, {
        ...{ what: 'A step in hand', timeoutMs: 30_000 },
      });
      await rig.killed('training-worker');
      await until(async () => (await trainingCounts(rig.machine)).finished.length > 0, {
        ...{ what: 'The same step, taken again', timeoutMs: 30_000 },
      });
    });
    expect(ledger.filter(({ finished, error }) => !finished || error !== '')).toEqual([]);
    expect(await rig.problems()).toEqual([]);
    const { batches, trained } = await rig.book.read();
    const steps = batches.filter(({ message }) => message.samples.length > 0);
    expect(trained.map(({ message }) => message.batch)).toEqual(steps.map(({ message }) => message.number));
  });

  it('an engine that dies in mid-stream costs its own streams, which end in an error and train nothing', async () => {
    const second = await rig.machine.addEngine();
    const ledger = await rig.during(async () => {
      await until(async () => (await engineCounts(second)).running > 1, { what: 'Streams of the second engine' });
      await rig.killed('engine-2');
    });
    const broken = ledger.filter(({ finished }) => !finished);
    expect(broken.length).toBeGreaterThan(0);
    expect(new Set(broken.map(({ error }) => error))).toEqual(new Set(['engine_failed']));
    expect(await rig.problems()).toEqual([]);
    const { completed } = await rig.book.read();
    const stored = new Map(completed.map(({ message }) => [message.turn, message]));
    for (const { turn } of broken) {
      expect(stored.get(turn)).toMatchObject({ engine: second, trainable: false, finishReason: 'error' });
    }
  });
});
