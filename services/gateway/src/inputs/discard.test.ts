import { PassThrough } from 'node:stream';
import { FakeClock } from '@backtalk/kit/testing';
import { describe, expect, it } from 'vitest';
import { Discarder } from './discard.js';

const piece = Buffer.alloc(16 * 1024);

/** A body of which three pieces lie ready. */
function refused(clock = new FakeClock(), discarder = new Discarder(clock)) {
  const body = new PassThrough({ highWaterMark: 64 * 1024 });
  const seen = { pieces: 0, ends: 0 };
  for (let at = 0; at < 3; at += 1) body.write(piece);
  discarder.discard(body, () => (seen.ends += 1));
  body.on('data', () => (seen.pieces += 1));
  return { clock, body, seen };
}

describe('a body that was refused and goes on coming', () => {
  it('takes one piece of a refused body, and the next after a pause', async () => {
    const { clock, seen } = refused();
    await clock.advance(1);
    expect(seen.pieces).toBe(1);
    await clock.advance(3);
    expect(seen.pieces).toBe(2);
  });

  it('takes one piece in each pause, however many refused bodies there are, and of each in turn', async () => {
    const clock = new FakeClock();
    const discarder = new Discarder(clock);
    const bodies = Array.from({ length: 4 }, () => refused(clock, discarder).seen);
    const pieces = () => bodies.map((seen) => seen.pieces);
    await clock.advance(1);
    expect(pieces()).toEqual([1, 1, 1, 1]);
    await clock.advance(3);
    expect(pieces()).toEqual([2, 1, 1, 1]);
    await clock.advance(9);
    expect(pieces()).toEqual([2, 2, 2, 2]);
  });

  it('says once that a refused body is over', async () => {
    const { clock, body, seen } = refused();
    body.end();
    await clock.advance(100);
    body.destroy();
    await clock.advance(5_000);
    expect(seen).toEqual({ pieces: 3, ends: 1 });
    expect(clock.waiting).toBe(0);
  });

  it('waits two seconds for the end of a refused body', async () => {
    const { clock, seen } = refused();
    await clock.advance(1_999);
    expect(seen.ends).toBe(0);
    await clock.advance(1);
    expect(seen.ends).toBe(1);
  });
});
