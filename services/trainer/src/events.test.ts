import { createLogger, Metrics } from '@backtalk/kit';
import { BatchClosed } from '@backtalk/proto/facts';
import { expect, it } from 'vitest';
import { createEvents } from './events.js';

it('a trainer that no longer leads shows neither an open batch nor what its last step measured', async () => {
  const metrics = new Metrics('trainer');
  const events = createEvents(createLogger({ service: 'trainer', level: 'silent' }), metrics);
  const batch = BatchClosed.fromPartial({ policy: 'backtalk', number: 1, version: 'backtalk-v1' });
  events.leadershipChanged(true);
  events.stepStarted(batch);
  events.stepMeasured(batch, { measurements: { v_mean: 2 }, samples: [] });
  expect(await metrics.registry.metrics()).toContain('name="v_mean"} 2');
  events.leadershipChanged(false);
  events.stepsLeft();
  const text = await metrics.registry.metrics();
  expect(text).not.toContain('name="v_mean"');
  expect(text).not.toMatch(/batch_open_timestamp_seconds\{.*\} [1-9]/);
});

it('samples taken and dropped stand at 0 before the first batch, so that the first one is an increase', async () => {
  const metrics = new Metrics('trainer');
  createEvents(createLogger({ service: 'trainer', level: 'silent' }), metrics).ledgerRead('backtalk', 0, 0, 0);
  const text = await metrics.registry.metrics();
  expect(text).toContain('samples_taken_total{policy="backtalk",kind="effective"} 0');
  expect(text).toContain('samples_taken_total{policy="backtalk",kind="anchor"} 0');
  expect(text).toContain('samples_dropped_total{policy="backtalk",reason="template_mismatch"} 0');
});
