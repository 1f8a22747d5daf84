import type { Clock } from './clock.js';

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
