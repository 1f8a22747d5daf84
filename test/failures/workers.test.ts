import type { ProcessSpec } from '@backtalk/deploy';
import { until } from '@backtalk/kit/testing';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { holdTraining, setEngine, trainingCounts } from '../loop/controls.js';
import { FailureRig } from './rig.js';

let rig: FailureRig;

/** The machine's own watch gives a busy process half a minute; a stand-in is never busy. */
function watchedClosely(spec: ProcessSpec): ProcessSpec {
  if (spec.name !== 'engine' || spec.watch === undefined) return spec;
  const { isWell } = spec.watch;
  return { ...spec, watch: { isWell, everyMs: 200, illMaxMs: 2_000, endsWithinMs: 200 } };
}

beforeAll(async () => {
  rig = await FailureRig.start({ adapt: watchedClosely });
});

afterAll(async () => {
  await rig?.stop();
});

describe('under load', () => {
  it('a training worker that dies in mid-step costs no sample and trains none twice', async () => {
    await holdTraining(rig.machine, true);
    const ledger = await rig.during(async () => {
      await until(async () => (await trainingCounts(rig.machine)).begun.length > 0, {
        what: 'A step in hand',
        timeoutMs: 60_000,
      });
      await rig.killed('training-worker');
      await until(async () => (await trainingCounts(rig.machine)).finished.length > 0, {
        what: 'The same step, taken again',
        timeoutMs: 60_000,
      });
    });
    expect(ledger.filter(({ finished, error }) => !finished || error !== '')).toEqual([]);
    expect(await rig.problems()).toEqual([]);
    // Whatever is still being closed or trained: no step is skipped, and none is taken twice.
    const { trained } = await rig.book.read();
    expect(trained.length).toBeGreaterThan(0);
    const numbers = trained.map(({ message }) => message.batch);
    expect(numbers).toEqual([...new Set(numbers)].sort((a, b) => a - b));
  });

  it('an engine that dies in mid-stream costs its own streams, which end in an error and train nothing', async () => {
    const second = await rig.machine.addEngine();
    // So many that both engines have some, and so slow that what has begun is not over when the engine is killed.
    const clients = 12;
    const pace = (tokenMs: number) =>
      Promise.all([rig.machine.engine, second].map((engine) => setEngine(engine, { tokenMs })));
    const ledger = await rig.during(
      async ({ crowd }) => {
        await pace(400);
        const inMidStream = async () => crowd.hearing === clients;
        await until(inMidStream, { what: 'All clients in mid-stream', timeoutMs: 60_000, everyMs: 20 });
        await rig.killed('engine-2');
        await pace(30);
      },
      { clients, streams: 1 },
    );
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

  it('an engine that hangs is started again, and chat answers', async () => {
    const before = rig.machine.pid('engine');
    rig.machine.kill('engine', 'SIGSTOP');
    await rig.machine.serves('engine', before);
    await rig.during(async () => undefined, { before: 0, after: 5 });
    expect(await rig.problems()).toEqual([]);
  });
});
