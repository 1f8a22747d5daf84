import { describe, expect, it } from 'vitest';
import { Metrics } from './metrics.js';

describe('Metrics', () => {
  it('names every metric after the service', async () => {
    const metrics = new Metrics('judge');
    metrics.counter('votes_total', 'Votes cast.', ['verdict']).inc({ verdict: 'good' }, 3);
    metrics.gauge('queue_turns', 'Turns that wait.').set(2);
    metrics.histogram('vote_seconds', 'Time of a vote.', [1, 5]).observe(2);
    const text = await metrics.registry.metrics();
    expect(text).toContain('backtalk_judge_votes_total{verdict="good"} 3');
    expect(text).toContain('backtalk_judge_queue_turns 2');
    expect(text).toContain('backtalk_judge_vote_seconds_bucket{le="5"} 1');
    expect(text).toContain('process_cpu_seconds_total');
  });

  it('gives the same object for the same name', () => {
    const metrics = new Metrics('judge');
    expect(metrics.counter('votes_total', 'Votes cast.')).toBe(metrics.counter('votes_total', 'Votes cast.'));
    expect(metrics.gauge('queue_turns', 'Waiting.')).toBe(metrics.gauge('queue_turns', 'Waiting.'));
    expect(metrics.histogram('vote_seconds', 'Time.', [1])).toBe(metrics.histogram('vote_seconds', 'Time.', [1]));
  });

  it('keeps two services in one process apart', async () => {
    new Metrics('judge').counter('votes_total', 'Votes cast.').inc();
    expect(await new Metrics('judge').registry.metrics()).not.toContain('votes_total');
  });
});
