import { SessionClosed, TurnContinued } from '@backtalk/proto/facts';
import { FakeClock } from '@backtalk/kit/testing';
import { expect, it } from 'vitest';
import type { JudgeParts } from './parts.js';
import { sessionClosed } from './session-closed.js';

it('a closed session waits for the votes on its turns as long as they may come, and an hour at most', async () => {
  const clock = new FakeClock();
  const results: string[] = [];
  const continued = TurnContinued.fromPartial({ turn: 't', main: true, consent: { train: true } });
  const parts: Pick<JudgeParts, 'clock'> & Record<string, unknown> = {
    clock,
    config: { atLeastOne: 'agree' },
    events: { sessionClosed: (result: string) => results.push(result) },
    turns: { continued: () => Promise.resolve(continued) },
    judgements: { highest: () => Promise.resolve(undefined) },
  };
  const message = SessionClosed.fromPartial({ tenant: 'a', user: 'u', session: 's', turns: ['t'] });
  const fact = { message, timeMs: clock.now(), trace: { traceparent: '' } };
  const handled = (deliveries: number) =>
    // The parts that it asks are there.
    sessionClosed(parts as never, fact as never, { deliveries, signal: new AbortController().signal } as never);
  await expect(handled(1)).rejects.toMatchObject({ code: 'session_awaits_votes', status: 503 });
  await expect(handled(20)).rejects.toMatchObject({ code: 'session_awaits_votes', status: 503 });
  await clock.advance(3_600_000);
  await handled(2);
  expect(results).toEqual(['nothing']);
});
