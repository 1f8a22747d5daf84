import { SessionClosed, TurnContinued } from '@backtalk/proto/facts';
import { expect, it } from 'vitest';
import type { JudgeParts } from './parts.js';
import { sessionClosed } from './session-closed.js';

it('a closed session gives its place up as long as votes on its turns may come, and goes on without them then', async () => {
  const results: string[] = [];
  const releases: number[] = [];
  const continued = TurnContinued.fromPartial({ turn: 't', main: true, consent: { train: true } });
  const parts: Partial<Record<keyof JudgeParts, unknown>> = {
    config: { atLeastOne: 'agree' },
    events: { sessionClosed: (result: string) => results.push(result) },
    turns: { continued: () => Promise.resolve(continued) },
    judgements: { highest: () => Promise.resolve(undefined) },
  };
  const message = SessionClosed.fromPartial({ tenant: 'a', user: 'u', session: 's', turns: ['t'] });
  const fact = { message, timeMs: 0, trace: { traceparent: '' } };
  const hold = () => ({ release: (delayMs: number) => releases.push(delayMs) });
  const handled = (deliveries: number) =>
    // The parts that it asks are there.
    sessionClosed(parts as never, fact as never, { deliveries, signal: new AbortController().signal, hold } as never);
  for (const deliveries of [1, 2, 23]) await handled(deliveries);
  expect(releases).toEqual([2_000, 4_000, 120_000]);
  expect(results).toEqual([]);
  await handled(24);
  expect(results).toEqual(['nothing']);
});
