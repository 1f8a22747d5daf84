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
