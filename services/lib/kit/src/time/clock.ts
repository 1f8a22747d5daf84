// Time as an argument. Services take a Clock and never call Date or setTimeout themselves, so that tests need no waiting.
import { setTimeout as sleepFor } from 'node:timers/promises';

export interface Clock {
  /** Milliseconds since 1970. */
  now(): number;
  /** Calls `fn` once after `ms`; the returned function cancels it. */
  timer(ms: number, fn: () => void): () => void;
  /** Rejects with the signal's reason as soon as the signal aborts. */
  sleep(ms: number, signal?: AbortSignal): Promise<void>;
}

/** Node fires longer timers at once. */
const timerMsMax = 2 ** 31 - 1;

export const systemClock: Clock = {
  now: () => Date.now(),
  timer: (ms, fn) => {
    const handle = setTimeout(fn, Math.min(ms, timerMsMax));
    return () => {
      clearTimeout(handle);
    };
  },
  sleep: (ms, signal) => sleepFor(Math.min(ms, timerMsMax), undefined, signal === undefined ? {} : { signal }),
};

/** The result of the work, or undefined when it takes longer than `ms`. Late failures are dropped: the caller has gone on. */
export async function within<T>(clock: Clock, ms: number, work: Promise<T>): Promise<T | undefined> {
  let cancel: () => void = () => undefined;
  const late = new Promise<undefined>((resolve) => {
    cancel = clock.timer(ms, () => {
      resolve(undefined);
    });
  });
  work.catch(() => undefined);
  try {
    return await Promise.race([work, late]);
  } finally {
    cancel();
  }
}

/** The result of the work; rejects with the signal's reason as soon as that aborts. Late failures are dropped: the caller has gone on. */
export async function untilAborted<T>(work: Promise<T>, signal: AbortSignal | undefined): Promise<T> {
  if (signal === undefined) return work;
  work.catch(() => undefined);
  signal.throwIfAborted();
  let stop: () => void = () => undefined;
  const aborted = new Promise<never>((_, reject) => {
    stop = () => {
      reject(signal.reason as Error);
    };
    signal.addEventListener('abort', stop, { once: true });
  });
  try {
    return await Promise.race([work, aborted]);
  } finally {
    signal.removeEventListener('abort', stop);
  }
}

export interface BackOff {
  readonly firstMs: number;
  readonly mostMs: number;
}

/** Doubles with every try; half of it is by chance, so that what failed together does not come back together. */
export function backOffMs(tries: number, { firstMs, mostMs }: BackOff, random: () => number = Math.random): number {
  const full = Math.min(mostMs, firstMs * 2 ** Math.min(tries - 1, 30));
  return Math.round(full * (0.5 + random() / 2));
}

/** Runs pieces of work one after the other, in the order in which they were given; a failed piece stops none. */
export class Mutex {
  private last: Promise<unknown> = Promise.resolve();
  private count = 0;

  /** Pieces that wait or run: callers bound it. */
  get size(): number {
    return this.count;
  }

  run<T>(work: () => Promise<T>): Promise<T> {
    this.count += 1;
    const result = this.last.then(work).finally(() => {
      this.count -= 1;
    });
    // The caller hears of the failure; the next piece only waits for the end.
    this.last = result.catch(() => undefined);
    return result;
  }
}

/** Pieces of work of one key one after another, those of different keys side by side. */
export class MutexByKey {
  /** Of keys that have something to do. */
  private readonly byKey = new Map<string, Mutex>();

  async run<T>(key: string, work: () => Promise<T>): Promise<T> {
    const own = this.byKey.get(key) ?? new Mutex();
    this.byKey.set(key, own);
    try {
      return await own.run(work);
    } finally {
      if (own.size === 0) this.byKey.delete(key);
    }
  }
}
