// The rule of the chart that knows which parts a release has: what promtool makes of it, for what the values render.
import { writeFileSync } from 'node:fs';
import { TemporaryDirectory } from '@backtalk/kit/testing';
import { afterAll, describe, expect, it } from 'vitest';
import { stringify } from 'yaml';
import { containersOf, podsOf } from '../chart/pods.js';
import { render, type Values } from '../chart/helm.js';
import { prometheusAbsent, promtool } from '../observability/prometheus.js';
import { namespace, release, releaseRules } from './rendered.js';

const absent = prometheusAbsent();
const folder = new TemporaryDirectory('missing');
const name = 'BacktalkComponentMissing';
const annotations = { summary: expect.any(String) as string };

interface Given {
  readonly values: Values;
  readonly files: readonly string[];
}

/** The parts that have figures, by the job that the ServiceMonitor gives them. */
function jobsOf({ values, files }: Given): string[] {
  const pods = podsOf(render(values, files)).filter(({ component }) => parts.test(component));
  const jobs = pods
    .filter(({ object }) => (object['spec'] as { replicas?: number }).replicas !== 0)
    .flatMap((pod) => [
      pod.component,
      ...containersOf(pod).flatMap((one) => (one.name === 'loader' ? ['loader'] : [])),
    ]);
  return [...new Set(jobs)].sort();
}
const parts = /^(?:gateway|collector|judge|trainer|publisher|training|engine-\w+)$/;

/** What promtool says of the rule where exactly these alerts are expected. */
function played(given: Given, series: Readonly<Record<string, string>>, at: string, jobs: readonly string[]): string {
  const rule = releaseRules(given.values, given.files)
    .flatMap(({ rules }) => rules)
    .find(({ alert }) => alert === name);
  expect(rule?.annotations).toMatchObject(annotations);
  const exp = jobs.map((job) => ({
    exp_labels: { namespace, release, job, ...rule?.labels },
    exp_annotations: rule?.annotations,
  }));
  writeFileSync(folder.join('rules.yml'), stringify({ groups: [{ name: 'one', rules: [rule] }] }));
  const test = {
    interval: '1m',
    input_series: Object.entries(series).map(([one, values]) => ({ series: one, values })),
    alert_rule_test: [{ eval_time: at, alertname: name, exp_alerts: exp }],
  };
  writeFileSync(
    folder.join('test.yml'),
    stringify({ rule_files: ['rules.yml'], evaluation_interval: '1m', tests: [test] }),
  );
  const { status, said } = promtool(['test', 'rules', folder.join('test.yml')]);
  return status === 0 ? '' : said;
}

const figure = (metric: string, job: string, of = release) =>
  `${metric}{namespace="${namespace}", release="${of}", job="${job}"}`;

afterAll(() => folder.remove());

describe.skipIf(absent !== undefined)(
  `parts of a release that never came up${absent === undefined ? '' : ` (skipped: ${absent})`}`,
  () => {
    it.each<[string, Given]>([
      ['default values', { values: {}, files: [] }],
      ['pools of their own', { values: {}, files: ['ci/gpu-cluster.yaml'] }],
      ['a collector that was switched off', { values: { collector: { replicas: 0 } }, files: [] }],
    ])('every part of %s is told of, once its start has had its time', (_, given) => {
      const jobs = jobsOf(given);
      expect(jobs.length).toBeGreaterThanOrEqual(7);
      expect(played(given, {}, '5m', [])).toBe('');
      expect(played(given, {}, '55m', jobs)).toBe('');
    });

    it('a part that another release has is told of, and one that was there within the day is not', () => {
      const given = { values: {}, files: [] };
      const there = {
        [figure('backtalk_publisher_leading', 'publisher', 'another')]: '1x60',
        [figure('backtalk_judge_engines_known', 'judge')]: '1x5 stale',
        [figure('backtalk_engine_adapters', 'engine-serving')]: '1x60',
      };
      const left = jobsOf(given).filter((job) => !['judge', 'engine-serving'].includes(job));
      expect(left).toContain('publisher');
      expect(played(given, there, '55m', left)).toBe('');
    });
  },
);
