// The numbers of a consumer of facts. Labels are names of facts and outcomes, never ids.
import type { Metrics } from '../telemetry/metrics.js';

export type Outcome = 'handled' | 'held' | 'retried' | 'waited' | 'dead' | 'given_back';

export type FactMetrics = ReturnType<typeof factMetrics>;

export function factMetrics(metrics: Metrics) {
  return {
    handled: metrics.counter('facts_handled_total', 'Deliveries of facts, by what became of them.', [
      'fact',
      'outcome',
    ]),
    seconds: metrics.histogram(
      'facts_handling_seconds',
      'Time a handler took for one fact.',
      [0.001, 0.005, 0.02, 0.1, 0.5, 2, 10, 60],
      ['fact'],
    ),
    pending: metrics.gauge('facts_pending', 'Facts in the log that this service has not settled.', ['fact']),
    inHand: metrics.gauge('facts_in_hand', 'Facts that are being handled.', ['fact']),
    held: metrics.gauge('facts_held', 'Facts that are kept un-acked until their effect is stored.', ['fact']),
    oldestAge: metrics.gauge('facts_oldest_age_seconds', 'Age of the oldest fact that is being handled.', ['fact']),
  };
}
