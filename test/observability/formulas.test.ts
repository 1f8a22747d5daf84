// Panels that compute something, on series whose figures are known: promtool works each formula out, and a wrong one gives
// another number. Panels that show a figure as it is are checked on the running loop (live.test.ts).
import { spawnSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { TemporaryDirectory } from '@backtalk/kit/testing';
import { afterAll, describe, expect, it } from 'vitest';
import { stringify } from 'yaml';
import { root } from '../loop/machine.js';
import { dashboardQueries, filled, type DashboardQuery } from './dashboard-queries.js';
import { prometheusAbsent } from './prometheus.js';

interface Case {
  /** By series, in promtool's notation: `0+3x60` is three more a minute, for an hour. */
  readonly series: Readonly<Record<string, string>>;
  /** Of each query of the panel, in their order: values by labels. */
  readonly expected: readonly Readonly<Record<string, number>>[];
}

const labels = 'namespace="n", policy="backtalk"';

function counters(name: string, label: string, perMinute: Readonly<Record<string, number>>): Case['series'] {
  return Object.fromEntries(
    Object.entries(perMinute).map(([value, step]) => [
      `${name}{${labels}, instance="a", ${label}="${value}"}`,
      `0+${String(step)}x60`,
    ]),
  );
}

/** Half of the cases take at most a second, and all at most two: the median is 1 s, and 95 % stay below 1.9 s. */
function histogram(name: string): Case {
  const series = counters(`${name}_bucket`, 'le', { 0.5: 0, 1: 5, 2: 10, '+Inf': 10 });
  return { series, expected: [{ '{}': 1 }, { '{}': 1.9 }] };
}

const judged = counters('backtalk_judge_turns_judged_total', 'verdict', { 1: 12, 0: 3, '-1': 5 });

/** Three quarters of what it may hold. */
function fill(name: string, label: string): Case {
  const series = { [`${name}{${labels}${label}}`]: '750x60', [`${name}_max{${labels}${label}}`]: '1000x60' };
  return { series, expected: [{ [`{${label.slice(2)}}`]: 0.75 }] };
}

const cases: Readonly<Record<string, Case>> = {
  'judge: Share of verdicts in the time range': {
    series: judged,
    expected: [{ '{verdict="1"}': 0.6, '{verdict="0"}': 0.15, '{verdict="-1"}': 0.25 }],
  },
  'judge: Judgements with a hint': {
    series: { ...judged, ...counters('backtalk_judge_hints_found_total', 'instance_of', { a: 3, b: 1 }) },
    expected: [{ '{}': 0.2 }],
  },
  'judge: Agreement of votes': {
    series: {
      ...counters('backtalk_judge_confidence_ratio_sum', 'of', { judge: 9 }),
      ...counters('backtalk_judge_confidence_ratio_count', 'of', { judge: 10 }),
    },
    expected: [{ '{}': 0.9 }],
  },
  'judge: Time from turn to judgement': histogram('backtalk_judge_turn_seconds'),
  'judge: Time of one try of a vote': histogram('backtalk_judge_vote_seconds'),
  'judge: Share of valid votes': {
    series: counters('backtalk_judge_votes_cast_total', 'result', { 1: 4, 0: 1, '-1': 2, timeout: 1, unparsed: 2 }),
    expected: [{ '{}': 0.7 }],
  },
  'training: Share with another template': {
    series: {
      ...counters('backtalk_trainer_samples_taken_total', 'of', { trainer: 20 }),
      ...counters('backtalk_trainer_samples_dropped_total', 'reason', { template_mismatch: 1, too_long: 5 }),
    },
    expected: [{ '{policy="backtalk"}': 0.05 }],
  },
  'loop: Feedback to weights': histogram('backtalk_trainer_feedback_to_weights_seconds'),
  'loop: Fill of the streams': fill('backtalk_collector_stream_bytes', ', stream="TURNS"'),
  'loop: Fill of the broker': fill('backtalk_collector_broker_bytes', ', kind="storage"'),
  'loop: Fill of Valkey': fill('backtalk_collector_valkey_bytes', ''),
  'training: Time of a step': histogram('backtalk_trainer_step_seconds'),
};

const absent = prometheusAbsent();
const directory = new TemporaryDirectory('formulas');
const promtool = join(root, '.venv', 'tools', 'prometheus', 'promtool');
const variables = {
  namespace: 'n',
  release: '.*',
  pool: '.*',
  policy: 'backtalk',
  __rate_interval: '5m',
  __interval: '1m',
  __range: '1h',
};

const boards: readonly string[] = ['judge', 'loop', 'training'];
const queries = dashboardQueries().filter(({ dashboard }) => boards.includes(dashboard));
const panelOf = ({ dashboard, place }: DashboardQuery) => `${dashboard}: ${place}`;

function computes({ expr }: DashboardQuery): boolean {
  return / \/ |histogram_quantile/.test(expr);
}

afterAll(() => {
  directory.remove();
});

describe('formulas of the boards of judge, loop and training', () => {
  it('every formula of these boards is worked out below', () => {
    const computing = new Set(queries.filter(computes).map(panelOf));
    expect([...computing].sort()).toEqual(Object.keys(cases).sort());
  });
});

describe.skipIf(absent !== undefined)(
  `formulas under promtool${absent === undefined ? '' : ` (skipped: ${absent})`}`,
  () => {
    it.each(Object.entries(cases))('the formula of %s computes what it says', (panel, { series, expected }) => {
      const tests = queries
        .filter((query) => panelOf(query) === panel)
        .map(({ expr }, at) => ({
          expr: `round(${filled(expr, variables)}, 0.001)`,
          eval_time: '60m',
          exp_samples: Object.entries(expected[at] ?? {}).map(([found, value]) => ({ labels: found, value })),
        }));
      const input = Object.entries(series).map(([name, values]) => ({ series: name, values }));
      const file = directory.join('formulas.test.yaml');
      const test = { interval: '1m', input_series: input, promql_expr_test: tests };
      writeFileSync(file, stringify({ rule_files: [], evaluation_interval: '1m', tests: [test] }));
      const { status, stdout, stderr } = spawnSync(promtool, ['test', 'rules', file], { encoding: 'utf8' });
      expect(status, stdout + stderr).toBe(0);
      expect(tests).toHaveLength(expected.length);
    });
  },
);
