import { getEventListeners } from 'node:events';
import { newTrace, systemClock, type JobQueue } from '@backtalk/kit';
import { describe, expect, it } from 'vitest';
import type { Material } from '../domain/material.js';
import type { JudgeEvents } from '../events.js';
import type { BallotBox } from '../outputs/ballot-box.js';
import { Ballots, type VoteJob } from './ballots.js';

const material: Material = {
  conversation: [],
  question: 'Why?',
  answer: 'So.',
  thoughts: '',
  version: '',
  place: { turn: 'turn', tenant: 'tenant', user: 'user', policy: 'backtalk', session: 'session' },
  next: { role: 'user', text: 'Thanks.', userText: 'Thanks.', parts: [] } as unknown as Material['next'],
};

describe('ballots', () => {
  it('hold on to nothing of a turn once it is judged, however long the process lives', async () => {
    const stopping = new AbortController();
    const jobs: VoteJob[] = [];
    const queue = { add: (_id: string, job: VoteJob) => Promise.resolve(void jobs.push(job)) };
    const box = { cast: () => Promise.resolve({ valid: true, verdict: 1, score: 1, hint: '', seed: 1 }) };
    const ballots = new Ballots({
      votes: 3,
      checkEveryMs: 1_000,
      clock: systemClock,
      queue: queue as unknown as JobQueue<VoteJob>,
      box: box as unknown as BallotBox,
      events: { turnsInHand: () => undefined } as unknown as JudgeEvents,
    });
    const cast = () => ballots.castAll(material, { deliveries: 1, signal: stopping.signal, trace: newTrace() });
    for (let turn = 0; turn < 3; turn += 1) {
      const votes = cast();
      expect(getEventListeners(stopping.signal, 'abort')).toHaveLength(1);
      for (const data of jobs.splice(0)) await ballots.handle({ data, attempt: 1, signal: stopping.signal } as never);
      expect(await votes).toHaveLength(3);
      expect(getEventListeners(stopping.signal, 'abort')).toHaveLength(0);
    }
    const left = cast();
    stopping.abort();
    await expect(left).rejects.toMatchObject({ code: 'votes_left' });
  });
});
