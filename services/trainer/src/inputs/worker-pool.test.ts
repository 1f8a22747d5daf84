import { folderBlobStore } from '@backtalk/kit';
import { FakeClock, TemporaryDirectory, until } from '@backtalk/kit/testing';
import { afterEach, describe, expect, it } from 'vitest';

import { TrainingWorker } from '../outputs/training-worker.js';
import { FakeTrainingWorker, workerToken } from '../testing/fake-training-worker.js';
import { WorkerPool, type HeldWorker } from './worker-pool.js';

const directory = new TemporaryDirectory('pool');
const fakes: FakeTrainingWorker[] = [];
const never = new AbortController().signal;
const seen: [string, string][] = [];
let workers: TrainingWorker[] = [];
let pool: WorkerPool;
let clock: FakeClock;

async function poolOf(count: number): Promise<FakeTrainingWorker[]> {
  for (let made = 0; made < count; made += 1) {
    const fake = new FakeTrainingWorker();
    fake.baseDigest = `worker ${String(made)}`;
    await fake.start();
    fakes.push(fake);
  }
  clock = new FakeClock();
  const wire = { tokens: { trainerToTraining: workerToken } };
  const blobs = folderBlobStore(directory.path);
  workers = fakes.map(({ address }) => new TrainingWorker(address, blobs, 10_000, wire));
  pool = new WorkerPool(workers, clock, { workerSeen: (worker, code) => seen.push([worker, code]) });
  return fakes;
}

afterEach(async () => {
  pool.close();
  await Promise.all(fakes.splice(0).map((fake) => fake.kill()));
});

const hold = (policy: string, signal = never, onWait?: () => void) =>
  pool.hold({ policy, call: `${policy}-1` }, signal, onWait);
const nameOf = ({ base }: HeldWorker) => base.digest;

describe('the training workers', () => {
  it('policies are served in the order in which they asked, one at a time on each worker', async () => {
    await poolOf(2);
    const [ada, ben] = [await hold('ada'), await hold('ben')];
    expect([nameOf(ada), nameOf(ben)]).toEqual(['worker 0', 'worker 1']);
    const order: string[] = [];
    const waited: string[] = [];
    const others = ['cleo', 'dan'].map(async (policy) => {
      const held = await hold(policy, never, () => waited.push(policy));
      order.push(policy);
      return held;
    });
    expect(waited).toEqual(['cleo', 'dan']);
    ben.release();
    const cleo = await others[0];
    expect(order).toEqual(['cleo']);
    expect(cleo && nameOf(cleo)).toBe('worker 1');
    ada.release();
    const dan = await others[1];
    expect(order).toEqual(['cleo', 'dan']);
    for (const held of [dan, cleo]) held?.release();
    // That has rested longest.
    expect(nameOf(await hold('eve'))).toBe('worker 0');
  });

  it('a policy goes back to the worker that has its files, and to none that another trainer keeps busy', async () => {
    const [, second] = await poolOf(2);
    const [ada, ben] = [await hold('ada'), await hold('ben')];
    ada.release();
    ben.release();
    const again = await hold('ben');
    expect(nameOf(again)).toBe('worker 1');
    again.release();
    if (second !== undefined) second.taking = 'of-another-trainer';
    expect(nameOf(await hold('ben'))).toBe('worker 0');
    expect(seen).toContainEqual([second?.address, 'worker_busy']);
  });

  it('a step that failed is tried on another worker, though the first says that it takes it still', async () => {
    const [first] = await poolOf(2);
    const ada = await hold('ada');
    if (first !== undefined) first.taking = 'ada-1';
    ada.release('failed');
    const again = await hold('ada');
    expect(nameOf(again)).toBe('worker 1');
    again.release();
    expect(nameOf(await hold('ada'))).toBe('worker 0');
  });

  it('what is in no hurry gets a worker that is free, and none that a policy waits for', async () => {
    await poolOf(1);
    const ada = await hold('ada');
    const tried = () => pool.tryHold({ policy: 'ada', call: 'again' }, never);
    expect(await tried()).toBeUndefined();
    const ben = hold('ben');
    ada.release();
    expect(await tried()).toBeUndefined();
    (await ben).release();
    expect(nameOf((await tried()) ?? expect.unreachable())).toBe('worker 0');
  });

  it('what is in no hurry does not wait behind a policy that waits for a worker that is away', async () => {
    const [first] = await poolOf(2);
    await first?.kill();
    const ada = await hold('ada');
    const ben = hold('ben');
    await until(() => clock.waiting === 1, { what: 'The next look' });
    expect(await pool.tryHold({ policy: 'cleo', call: 'again' }, never)).toBeUndefined();
    ada.release();
    (await ben).release();
  });

  it('one that gives up in the middle of the queue lets none behind it pass those before it', async () => {
    const [only] = await poolOf(1);
    const ada = await hold('ada');
    const ben = hold('ben');
    const stop = new AbortController();
    const gone = hold('cleo', stop.signal);
    let dan: HeldWorker | undefined;
    const last = hold('dan').then((held) => (dan = held));
    stop.abort();
    await expect(gone).rejects.toThrow();
    ada.release();
    const served = await ben;
    // As long as dan would need to look at the worker.
    for (let looks = 0; looks < 3; looks += 1) await workers.at(-1)?.look('dan-1', never);
    expect(dan).toBeUndefined();
    served.release();
    expect(nameOf(await last)).toBe('worker 0');
    expect(only?.steps).toEqual([]);
  });

  it('a worker that takes the very step already is the one that is asked to go on', async () => {
    const [, , third] = await poolOf(3);
    if (third !== undefined) third.taking = 'ada-1';
    expect(nameOf(await hold('ada'))).toBe('worker 2');
  });

  it('a policy is told at once that all are away; with another at work, it waits, also for one that comes back', async () => {
    const [first, second] = await poolOf(2);
    await first?.kill();
    const ben = await hold('ben');
    expect(nameOf(ben)).toBe('worker 1');
    let ada: HeldWorker | undefined;
    const waits = hold('ada').then((held) => (ada = held));
    await until(() => clock.waiting === 1, { what: 'The next look' });
    expect(ada).toBeUndefined();
    await first?.start();
    const isBack = async () => {
      await clock.advance(5_000);
      return ada !== undefined;
    };
    await until(isBack, { what: 'The worker that came back' });
    expect(nameOf(await waits)).toBe('worker 0');
    for (const held of [await waits, ben]) held.release();
    for (const fake of [first, second]) await fake?.kill();
    await expect(hold('cleo')).rejects.toMatchObject({ retry: 'later' });
  });

  it('one that asked and gives up is passed over, and a worker that is given back twice is there once', async () => {
    await poolOf(1);
    const ada = await hold('ada');
    const stop = new AbortController();
    const gone = hold('ben', stop.signal);
    const cleo = hold('cleo');
    stop.abort();
    await expect(gone).rejects.toThrow();
    ada.release();
    ada.release();
    expect(nameOf(await cleo)).toBe('worker 0');
    let waited = false;
    void hold('dan', never, () => (waited = true));
    expect(waited).toBe(true);
  });
});
