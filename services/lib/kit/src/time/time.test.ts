import { describe, expect, it } from 'vitest';
import { kitErrors } from '../errors/backtalk-error.js';
import { FakeClock } from '../testing/fake-clock.js';
import { Mutex, within } from './clock.js';

describe('Mutex', () => {
  it('runs the next piece only after the one before has ended, and after a failed one too', async () => {
    const mutex = new Mutex();
    const steps: string[] = [];
    const piece = (name: string, fails = false) =>
      mutex.run(async () => {
        steps.push(`${name} begins`);
        await Promise.resolve();
        steps.push(`${name} ends`);
        if (fails) throw kitErrors.cancelled();
        return name;
      });
    const first = piece('a', true).catch((error: unknown) => error);
    const second = piece('b');
    expect(mutex.size).toBe(2);
    expect(await second).toBe('b');
    expect(await first).toMatchObject({ code: 'cancelled' });
    expect(steps).toEqual(['a begins', 'a ends', 'b begins', 'b ends']);
    expect(mutex.size).toBe(0);
  });
});

describe('within', () => {
  it('gives the result of work that is in time, and lets its timer go', async () => {
    const clock = new FakeClock();
    expect(await within(clock, 1_000, Promise.resolve('done'))).toBe('done');
    expect(clock.waiting).toBe(0);
  });

  it('gives nothing for work that is late, and drops what becomes of it', async () => {
    const clock = new FakeClock();
    let fail: (error: unknown) => void = () => undefined;
    const work = new Promise<string>((_resolve, reject) => {
      fail = reject;
    });
    const answer = within(clock, 1_000, work);
    await clock.advance(1_000);
    expect(await answer).toBeUndefined();
    fail(kitErrors.cancelled());
  });
});
