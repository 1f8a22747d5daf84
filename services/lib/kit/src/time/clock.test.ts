import { describe, expect, it } from 'vitest';
import { MutexByKey, systemClock } from './clock.js';

describe('systemClock', () => {
  it('fires a timer, and not one that was cancelled', async () => {
    const fired: string[] = [];
    const cancel = systemClock.timer(1, () => fired.push('cancelled'));
    cancel();
    await new Promise<void>((resolve) => {
      systemClock.timer(2, resolve);
    });
    expect(fired).toEqual([]);
  });

  it('ends a sleep as soon as its signal aborts', async () => {
    await expect(systemClock.sleep(60_000, AbortSignal.abort())).rejects.toThrow(/abort/);
  });

  it('holds a timer longer than Node can count instead of firing it at once', async () => {
    let fired = false;
    const cancel = systemClock.timer(2 ** 40, () => {
      fired = true;
    });
    await new Promise<void>((resolve) => {
      systemClock.timer(5, resolve);
    });
    cancel();
    expect(fired).toBe(false);
  });
});

describe('work by key', () => {
  it('pieces of one key go one after another, also after one that failed, and another key’s beside them', async () => {
    const mutex = new MutexByKey();
    const said: string[] = [];
    const piece = (key: string, ms: number, name: string) =>
      mutex.run(key, async () => {
        await systemClock.sleep(ms);
        said.push(name);
        if (name === 'first') throw new TypeError(name);
      });
    const first = expect(piece('a', 20, 'first')).rejects.toThrow('first');
    await Promise.all([first, piece('a', 0, 'second'), piece('b', 0, 'beside')]);
    expect(said).toEqual(['beside', 'first', 'second']);
  });
});
