import { EventEmitter } from 'node:events';
import type { ServerResponse } from 'node:http';
import { FakeClock } from '@backtalk/kit/testing';
import { expect, it } from 'vitest';
import { StreamWriter } from './stream-writer.js';

/** A response whose client has read so many of its bytes. */
class SlowResponse extends EventEmitter {
  destroyed = false;
  readonly socket = { bytesWritten: 1_000, writableLength: 1_000 };

  read(bytes: number): void {
    this.socket.writableLength -= bytes;
  }

  destroy(): void {
    this.destroyed = true;
  }
}

it('a client that reads a little at a time is waited for, and cut once nothing is read for the whole of the wait', async () => {
  const [response, clock] = [new SlowResponse(), new FakeClock()];
  const drained = new StreamWriter(response as unknown as ServerResponse, clock, 1_000).drained();
  const outcome = drained.catch((error: unknown) => error);
  for (let waits = 0; waits < 5; waits += 1) {
    response.read(1);
    await clock.advance(1_000);
    expect(response.destroyed).toBe(false);
  }
  await clock.advance(1_000);
  expect(response.destroyed).toBe(true);
  expect(await outcome).toMatchObject({ code: 'reader_too_slow' });
  expect([clock.waiting, response.listenerCount('drain'), response.listenerCount('close')]).toEqual([0, 0, 0]);
});
