// Lets a client finish that sends a body which was refused: closing at once would reset the connection, and it would never read why.
// In: what it sends. Out: the news that it is over, or has lasted long enough. Sent at full speed, an unwanted body
// would keep this process busy before all others; so it is taken in pieces, one in each pause.
import type { Readable } from 'node:stream';
import type { Clock } from '@backtalk/kit';

const discardMsMax = 2_000;
/** A piece has 64 KiB at most: some 20 MB a second of a connection. */
const pauseMs = 3;

export function discard(body: Readable, clock: Clock, then: () => void): void {
  let cancelPause = (): void => undefined;
  const done = (): void => {
    cancelPause();
    cancelDeadline();
    body.off('data', pause).off('end', done).off('close', done).resume();
    then();
  };
  const pause = (): void => {
    body.pause();
    cancelPause = clock.timer(pauseMs, () => body.resume());
  };
  const cancelDeadline = clock.timer(discardMsMax, done);
  body.on('data', pause).once('end', done).once('close', done).resume();
}
