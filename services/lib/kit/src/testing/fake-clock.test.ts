import { describe, expect, it } from 'vitest';
import { FakeClock } from './fake-clock.js';

describe('FakeClock', () => {
  it('fires what falls due, in order of time, and nothing else', async () => {
    const clock = new FakeClock(1000);
    const fired: number[] = [];
    for (const ms of [30, 10, 50]) clock.timer(ms, () => fired.push(clock.now()));
    await clock.advance(40);
    expect(fired).toEqual([1010, 1030]);
    expect(clock.now()).toBe(1040);
    expect(clock.waiting).toBe(1);
  });

  it('fires what was set by what fired, too', async () => {
    const clock = new FakeClock();
    let rounds = 0;
    const again = (): void => {
      rounds += 1;
      clock.timer(10, again);
    };
    clock.timer(10, again);
    await clock.advance(35);
    expect(rounds).toBe(3);
  });

  it('lets a loop of sleeps go round', async () => {
    const clock = new FakeClock();
    const stopping = new AbortController();
    let rounds = 0;
    const loop = async (): Promise<void> => {
      for (;;) {
        await clock.sleep(10, stopping.signal);
        rounds += 1;
      }
    };
    const ended = loop().catch((reason: unknown) => reason);
    await clock.advance(25);
    stopping.abort('enough');
    expect(await ended).toBe('enough');
    expect(rounds).toBe(2);
    expect(clock.waiting).toBe(0);
  });

  it('a cancelled timer does not fire, and a sleep whose signal is already aborted rejects', async () => {
    const clock = new FakeClock();
    let fired = false;
    clock.timer(1, () => {
      fired = true;
    })();
    await expect(clock.sleep(1, AbortSignal.abort('gone'))).rejects.toBe('gone');
    await clock.advance(10);
    expect(fired).toBe(false);
  });
});
