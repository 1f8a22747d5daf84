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

/** Of the trainer or publisher that leads (a), and of one that led before and keeps what it had (b). */
function leaders(
  name: string,
  leads: string,
  values: Readonly<Record<string, readonly [number, number]>>,
): Case['series'] {
  const each = Object.entries(values).flatMap<[string, string]>(([more, [now, before]]) => [
    [`${name}{namespace="n", ${more}, instance="a"}`, `${String(now)}x60`],
    [`${name}{namespace="n", ${more}, instance="b"}`, `${String(before)}x60`],
  ]);
  const leading = {
    [`${leads}{namespace="n", instance="a"}`]: '1x60',
    [`${leads}{namespace="n", instance="b"}`]: '0x60',
  };
  return { ...Object.fromEntries(each), ...leading };
}

const ofTrainers = (name: string, values: Readonly<Record<string, readonly [number, number]>>) =>
  leaders(`backtalk_trainer_${name}`, 'backtalk_trainer_leader_active', values);
const ofPublishers = (name: string, values: Readonly<Record<string, readonly [number, number]>>) =>
  leaders(`backtalk_publisher_${name}`, 'backtalk_publisher_leading', values);

/** A count by label that is not there until it is 1, ten minutes before the end, as of a process that started in the range. */
function firstOf(name: string, more: string): Case['series'] {
  return { [`${name}{namespace="n", ${more}}`]: '_x49 1x11' };
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
  'loop: Time to handle a fact': {
    series: counters('backtalk_trainer_facts_handling_seconds_bucket', 'le', { 1: 5, 2: 10, '+Inf': 10 }),
    expected: [{ '{}': 1.9 }],
  },
  'loop: Fill of the streams': fill('backtalk_collector_stream_bytes', ', stream="TURNS"'),
  'loop: Fill of the broker': fill('backtalk_collector_broker_bytes', ', kind="storage"'),
  'loop: Fill of Valkey': fill('backtalk_collector_valkey_bytes', ''),
  'training: Time of a step': histogram('backtalk_trainer_step_seconds'),
};

/** What several policies, several replicas and processes that have just started add up to. */
const severalCases: Readonly<Record<string, Case>> = {
  'loop: What the ledger does': {
    series: ofTrainers('ledger_state', {
      'policy="one", state="training"': [1, 0],
      'policy="one", state="standing_by"': [0, 1],
      'policy="two", state="troubled"': [1, 0],
    }),
    expected: [{ '{policy="one", state="training"}': 1, '{policy="two", state="troubled"}': 1 }],
  },
  'loop: Newest trained version': {
    series: ofTrainers('version_number', { 'policy="one"': [4, 9], 'policy="two"': [7, 7] }),
    expected: [{ '{policy="one"}': 4, '{policy="two"}': 7 }],
  },
  'loop: Lag: what waits before each stage': {
    series: {
      ...ofTrainers('turns_pending', {
        'policy="one", kind="effective"': [3, 50],
        'policy="two", kind="effective"': [4, 0],
      }),
      ...ofTrainers('batch_open_timestamp_seconds', { 'policy="one"': [600, 0], 'policy="two"': [1200, 0] }),
    },
    expected: [{}, {}, {}, {}, { '{kind="effective"}': 7 }, { '{}': 2 }, {}],
  },
  'loop: Oldest age in each stage': {
    series: ofTrainers('batch_open_timestamp_seconds', {
      'policy="one"': [600, 0],
      'policy="two"': [1200, 0],
      'policy="three"': [0, 0],
    }),
    expected: [{}, {}, {}, {}, { '{}': 3000 }, {}],
  },
  'loop: Hints and lessons': {
    series: ofTrainers('lessons_known', {
      'policy="one", state="active"': [2, 8],
      'policy="two", state="active"': [3, 0],
    }),
    expected: [{}, { '{state="active"}': 5 }],
  },
  'loop: From request to weights, in the time range': {
    series: firstOf('backtalk_trainer_steps_total', 'policy="one", outcome="trained"'),
    expected: [{}, {}, {}, {}, {}, {}, { '{}': 1 }, {}],
  },
  'judge: Share of valid votes': {
    series: counters('backtalk_judge_votes_cast_total', 'result', { timeout: 4 }),
    expected: [{ '{}': 0 }],
  },
  'training: Turns that wait for a batch': {
    series: ofTrainers('turns_pending', {
      'policy="one", kind="idle"': [3, 50],
      'policy="two", kind="idle"': [4, 0],
    }),
    expected: [{ '{policy="one", kind="idle"}': 3, '{policy="two", kind="idle"}': 4 }],
  },
  'training: Entropy': {
    series: {
      'backtalk_trainer_step_measurement{namespace="n", policy="one", name="entropy", pod="trainer-new"}': '2x60',
      'backtalk_trainer_step_measurement{namespace="n", policy="one", name="entropy", pod="trainer-old"}': '1x60',
    },
    expected: [{ '{policy="one", name="entropy"}': 2 }],
  },
  'training: Steps by how they ended': {
    series: firstOf('backtalk_trainer_steps_total', 'policy="one", outcome="step_failed"'),
    expected: [{ '{outcome="step_failed"}': 1 }],
  },
  'training: Batches closed, by why': {
    series: firstOf('backtalk_trainer_batches_closed_total', 'policy="one", why="timeout"'),
    expected: [{ '{why="timeout"}': 1 }],
  },
  'training: Steps put off, by why': { series: {}, expected: [{ '{code="none"}': 0 }] },
  'training: Guards that acted': {
    series: firstOf('backtalk_trainer_guards_acted_total', 'policy="one", guard="ess", action="mask"'),
    expected: [{ '{guard="ess", action="mask"}': 1 }],
  },
  'training: Workers that take steps': {
    series: ofTrainers('training_worker_up', { 'worker="w"': [0, 1] }),
    expected: [{ '{worker="w"}': 0 }],
  },
  'swaps: Parity of the newest candidate': {
    series: ofPublishers('gate_parity', { 'policy="one"': [0.01, 0.4], 'policy="two"': [0.02, 0] }),
    expected: [{ '{policy="one"}': 0.01, '{policy="two"}': 0.02 }],
  },
  'swaps: Drift of the newest candidate': {
    series: ofPublishers('gate_drift', { 'policy="one"': [1, 4] }),
    expected: [{ '{policy="one"}': 1 }],
  },
  'swaps: Faulty answers of the newest candidate': {
    series: ofPublishers('gate_faulty_answers', {
      'policy="one", fault="empty"': [0, 5],
      'policy="two", fault="empty"': [2, 0],
    }),
    expected: [{ '{policy="one", fault="empty"}': 0, '{policy="two", fault="empty"}': 2 }],
  },
  'swaps: Corrected turns asked again of the newest candidate': {
    series: ofPublishers('gate_cases', { 'policy="one", result="lost"': [0, 3] }),
    expected: [{ '{policy="one", result="lost"}': 0 }],
  },
  'swaps: Versions burned before they served, by reason': {
    series: firstOf('backtalk_publisher_burned_total', 'reason="drift"'),
    expected: [{ '{reason="drift"}': 1 }],
  },
  'swaps: Prepared at the loaders, by outcome': {
    series: {
      'backtalk_loader_prepares_total{namespace="n", outcome="loaded"}': '5+1x60',
      ...firstOf('backtalk_loader_prepares_total', 'outcome="blob_corrupt"'),
    },
    expected: [{ '{outcome="blob_corrupt"}': 1, '{outcome="loaded"}': 60 }],
  },
  'swaps: Loaders left out': {
    series: firstOf('backtalk_publisher_loaders_left_out_total', 'code="engine_unavailable"'),
    expected: [{ '{code="engine_unavailable"}': 1 }],
  },
  'swaps: Gateways that did not answer Commit': {
    series: firstOf('backtalk_publisher_commit_failures_total', 'code="deadline"'),
    expected: [{ '{code="deadline"}': 1 }],
  },
};

const absent = prometheusAbsent();
const directory = new TemporaryDirectory('formulas');
const promtool = join(root, '.venv', 'tools', 'prometheus', 'promtool');
const variables = {
  namespace: 'n',
  release: '.*',
  pool: '.*',
  policy: '.*',
  __rate_interval: '5m',
  __interval: '1m',
  __range: '1h',
};

const boards: readonly string[] = ['judge', 'loop', 'training'];
const queries = dashboardQueries();
const panelOf = ({ dashboard, place }: DashboardQuery) => `${dashboard}: ${place}`;

function computes({ expr }: DashboardQuery): boolean {
  return / \/ |histogram_quantile/.test(expr);
}

afterAll(() => {
  directory.remove();
});

describe('formulas of the boards of judge, loop and training', () => {
  it('every formula of these boards is worked out below', () => {
    const computing = new Set(
      queries.filter((query) => boards.includes(query.dashboard) && computes(query)).map(panelOf),
    );
    expect([...computing].sort()).toEqual(Object.keys(cases).sort());
  });
});

describe.skipIf(absent !== undefined)(
  `formulas under promtool${absent === undefined ? '' : ` (skipped: ${absent})`}`,
  () => {
    it.each(Object.entries(cases))('the formula of %s computes what it says', workOut);

    it.each(Object.entries(severalCases))(
      'the panel %s holds with several policies, replicas and first events',
      workOut,
    );
  },
);

function workOut(panel: string, { series, expected }: Case): void {
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
}
