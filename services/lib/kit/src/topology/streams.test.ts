import { BatchClosed, Lesson } from '@backtalk/proto/facts';
import { createHash } from 'node:crypto';
import { expect, it } from 'vitest';
import { FactPublisher } from '../facts/publisher.js';
import { folderBytes } from '../installation/data-folder.js';
import { startNats } from '../testing/nats-server.js';

const id = (kind: string, n: number) => `${kind}_${createHash('sha256').update(`${kind}${n}`).digest('hex')}`;
const lessons = Array.from({ length: 500 }, (_, n) =>
  Lesson.fromPartial({
    id: id('lesson', n),
    text: `From now on answer in ${n} words.`,
    scopeTenant: id('tenant', 0),
    scopeUser: id('user', n % 64),
    cases: [0, 1, 2].map((at) => ({ turn: id('turn', 3 * n + at), tenant: id('tenant', 0), user: id('user', n % 64) })),
  }),
);

/** What is fsynced on a busy disk may take its time. */
const options = (expectSequence: number) => ({ expectSequence, timeoutMs: 30_000 });

it('batches that each say all lessons take less than half of their bytes on disk', async () => {
  const nats = await startNats();
  try {
    const publisher = new FactPublisher(await nats.connect('trainer'));
    let expectSequence = 0;
    let bytes = 0;
    for (let number = 1; number <= 30; number += 1) {
      const batch = BatchClosed.fromPartial({ policy: 'backtalk', number, lessons });
      bytes += BatchClosed.encode(batch).finish().length;
      ({ sequence: expectSequence } = await publisher.publish('batchClosed', batch, options(expectSequence)));
    }
    expect(folderBytes(nats.storeDirectory)).toBeLessThan(bytes / 2);
  } finally {
    await nats.stop();
  }
}, 60_000);
