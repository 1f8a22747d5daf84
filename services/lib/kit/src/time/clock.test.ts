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
    let release: () => void = () => undefined;
    const released = new Promise<void>((resolve) => (release = resolve));
    const first = mutex.run('a', async () => {
      await released;
      said.push('first');
      throw new TypeError('first');
    });
    const second = mutex.run('a', () => Promise.resolve(said.push('second')));
    await mutex.run('b', () => Promise.resolve(said.push('beside')));
    release();
    await expect(first).rejects.toThrow('first');
    await second;
    expect(said).toEqual(['beside', 'first', 'second']);
  });
});
