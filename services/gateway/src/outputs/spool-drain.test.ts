import { kitErrors, Metrics, type FactPublisher } from '@backtalk/kit';
import { FakeClock, silentLogger, TemporaryDirectory, until } from '@backtalk/kit/testing';
import { expect, it, vi } from 'vitest';
import { createEvents } from '../events.js';
import { SpoolDrain } from './spool-drain.js';
import { Spool } from './spool.js';

const record = { name: 'turnCompleted', traceparent: '', message: new Uint8Array() } as const;

it('a log that takes nothing is tried once a second, however much is spooled meanwhile, and at once when the broker is back', async () => {
  const clock = new FakeClock();
  const events = createEvents(silentLogger, new Metrics('gateway'));
  const directory = new TemporaryDirectory('drain');
  const spool = await Spool.open({ directory: directory.path, bytesMax: 1024 * 1024, clock, events });
  const publish = vi.fn().mockRejectedValue(kitErrors.cancelled());
  const publisher = { publish } as unknown as FactPublisher;
  const drain = new SpoolDrain({ spool, publisher, clock, events, onStored: () => undefined });
  const pausedAfter = (tries: number) => until(() => publish.mock.calls.length === tries && clock.waiting === 1);

  await spool.append([record]);
  drain.kick();
  await pausedAfter(1);
  for (let turn = 0; turn < 5; turn += 1) {
    await spool.append([record]);
    drain.kick();
  }
  await clock.advance(999);
  expect(publish).toHaveBeenCalledTimes(1);
  await clock.advance(1);
  await pausedAfter(2);
  drain.wake();
  await pausedAfter(3);
  publish.mockResolvedValue(undefined);
  drain.wake();
  await until(() => spool.isEmpty);
  await drain.stop();
  directory.remove();
});
