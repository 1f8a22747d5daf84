import { EventEmitter } from 'node:events';
import type { ServerResponse } from 'node:http';
import { afterEach, expect, it, vi } from 'vitest';
import { delivered, StreamWriter } from './stream-writer.js';

/** A response, and the socket under it, whose timer the test rings. */
class Response extends EventEmitter {
  readonly timers: number[] = [];
  readonly socket = Object.assign(new EventEmitter(), {
    setTimeout: (ms: number) => {
      this.timers.push(ms);
      return this.socket;
    },
    destroyed: false,
    writableLength: 1,
  });
  destroyed = false;

  destroy(): void {
    this.destroyed = true;
  }

  get waiters(): number {
    return this.socket.listenerCount('timeout') + this.listenerCount('drain') + this.listenerCount('close');
  }
}

const drainedOf = (response: Response) =>
  new StreamWriter(response as unknown as ServerResponse, 1_000).drained().then(
    () => 'drained',
    (error: unknown) => error,
  );

afterEach(() => {
  vi.useRealTimers();
});

it('a client is cut once its socket says that nothing was read for the whole of the wait', async () => {
  const response = new Response();
  const outcome = drainedOf(response);
  expect(response.timers).toEqual([1_000]);
  response.socket.emit('timeout');
  expect(await outcome).toMatchObject({ code: 'reader_too_slow' });
  expect([response.destroyed, response.timers, response.waiters]).toEqual([true, [1_000, 0], 0]);
});

it.each([
  ['drain', 'drained'],
  ['close', { code: 'client_gone' }],
])('a client whose buffer says %s is waited for no longer, and its socket’s timer is off', async (event, expected) => {
  const response = new Response();
  const outcome = drainedOf(response);
  response.emit(event);
  expect(await outcome).toEqual(typeof expected === 'string' ? expected : expect.objectContaining(expected));
  expect([response.destroyed, response.timers, response.waiters]).toEqual([false, [1_000, 0], 0]);
});

it('a client that reads a whole answer drop by drop is cut after twelve waits', async () => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
  const response = new Response();
  const outcome = delivered(response as unknown as ServerResponse, 1_000);
  vi.advanceTimersByTime(11_999);
  expect(response.destroyed).toBe(false);
  vi.advanceTimersByTime(1);
  expect([response.destroyed, await outcome]).toEqual([true, false]);
});

it('a client that has read its answer is not cut afterwards', async () => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
  const response = new Response();
  const outcome = delivered(response as unknown as ServerResponse, 1_000);
  response.emit('finish');
  vi.advanceTimersByTime(12_000);
  expect([response.destroyed, await outcome, vi.getTimerCount()]).toEqual([false, true, 0]);
});
