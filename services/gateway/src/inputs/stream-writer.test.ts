import { EventEmitter } from 'node:events';
import type { ServerResponse } from 'node:http';
import { afterEach, expect, it, vi } from 'vitest';
import { BodyBudget } from '../domain/body-budget.js';
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
  /** Of what was written, nothing is read until the test says so. */
  writableLength = 0;

  destroy(): void {
    this.destroyed = true;
  }

  get waiters(): number {
    // The writer itself hears of all that is read.
    const drains = this.listenerCount('drain') - 1;
    return this.socket.listenerCount('timeout') + drains + this.listenerCount('close');
  }

  get writableNeedDrain(): boolean {
    return this.writableLength >= connectionBytes;
  }

  cork(): void {}

  uncork(): void {}

  write(text: string): void {
    this.writableLength += text.length;
  }

  end(text: string): void {
    this.write(text);
  }

  read(): void {
    this.writableLength = 0;
    this.emit('drain');
  }
}

const mebibyte = 1024 * 1024;
const connectionBytes = mebibyte / 16;

const writerTo = (response: Response, budget = new BodyBudget(8 * mebibyte)) =>
  new StreamWriter(response as unknown as ServerResponse, budget.room('a', 'a'), 1_000);

const drainedOf = (response: Response) =>
  writerTo(response)
    .drained()
    .then(
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

it('a client that reads nothing is waited for once its key has no room left, and what another has read is room again', () => {
  const budget = new BodyBudget(2 * mebibyte);
  const [first, second] = [new Response(), new Response()];
  const [toFirst, toSecond] = [writerTo(first, budget), writerTo(second, budget)];
  const piece = 'x'.repeat(mebibyte / 4);
  for (const writer of [toFirst, toFirst, toSecond, toSecond]) expect(writer.write(piece)).toBe(true);
  expect(toSecond.write(piece)).toBe(false);
  first.read();
  expect(writerTo(new Response(), budget).write(piece)).toBe(true);
});

it('a client that reads as it is written to is never waited for, even where there is no room', () => {
  const budget = new BodyBudget(2 * mebibyte);
  budget.room('a', 'a').grow(mebibyte);
  expect(writerTo(new Response(), budget).write('word')).toBe(true);
});

it('what comes last takes room, too, and waits for none', () => {
  const budget = new BodyBudget(2 * mebibyte);
  writerTo(new Response(), budget).end('x'.repeat(mebibyte));
  expect(budget.room('a', 'a').mayGrow(1)).toBe(false);
});
