// Waits for a condition, bounded. In: a condition that may throw until it holds. Out: its first value that is not false.
import { setTimeout as sleep } from 'node:timers/promises';
import { defineErrors } from '../errors/backtalk-error.js';

export const testingErrors = defineErrors('testing', {
  neverHappened: {
    code: 'never_happened',
    retry: 'never',
    message: (p: { what: string; timeoutMs: number }) => `${p.what} did not happen within ${p.timeoutMs} ms.`,
  },
  serverFailed: {
    code: 'test_server_failed',
    retry: 'never',
    message: (p: { program: string; output: string }) => `${p.program} did not start: ${p.output}`,
  },
  portsUsedUp: {
    code: 'ports_used_up',
    retry: 'never',
    message: (p: { first: number; end: number }) => `No port from ${p.first} below ${p.end} is free any more.`,
  },
  environmentMissing: {
    code: 'environment_missing',
    retry: 'never',
    message: (p: { what: string }) => `${p.what} is not there: run npm test at the root of the repository once.`,
  },
});

export interface UntilOptions {
  readonly timeoutMs?: number;
  readonly everyMs?: number;
  /** Words for the failure; as a function, how things stand by then. */
  readonly what?: string | (() => string);
}

export async function until<T>(
  condition: () => T | Promise<T>,
  { timeoutMs = 30_000, everyMs = 10, what = 'What the test waits for' }: UntilOptions = {},
): Promise<Exclude<T, false | undefined | null>> {
  const end = Date.now() + timeoutMs;
  let lastError: unknown;
  for (;;) {
    try {
      const value = await condition();
      if (isThere(value)) return value;
    } catch (error) {
      lastError = error;
    }
    if (Date.now() >= end) {
      const words = typeof what === 'string' ? what : what();
      throw testingErrors.neverHappened({ what: words, timeoutMs }, lastError);
    }
    await sleep(everyMs);
  }
}

function isThere<T>(value: T): value is Exclude<T, false | undefined | null> {
  return value !== false && value !== undefined && value !== null;
}
