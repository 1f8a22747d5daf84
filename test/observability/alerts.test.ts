import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { parse, stringify } from 'yaml';
import { alertCases, releaseLabel, type AlertCase } from './alert-cases.js';
import { namespace, release, releaseRules } from '../alerts/rendered.js';
import { root } from '../loop/machine.js';
import { prometheusAbsent, promtool } from './prometheus.js';

interface Rule {
  readonly alert: string;
  readonly expr: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly annotations: Readonly<Record<string, string>>;
}

interface Group {
  readonly name: string;
  readonly rules: readonly Rule[];
}

const folder = join(root, 'charts', 'backtalk', 'files', 'alerts');
const runbook = join(root, 'deploy', 'dashboards', 'RUNBOOK.md');
const files = readdirSync(folder).filter((name) => name.endsWith('.yaml'));
const groups = files.flatMap((name) => (parse(readFileSync(join(folder, name), 'utf8')) as { groups: Group[] }).groups);
const rules = groups.flatMap((group) => group.rules);
const names = rules.map(({ alert }) => alert);
const sections = [...readFileSync(runbook, 'utf8').matchAll(/^## (\w+)$/gm)].map(([, name = '']) => name);
const absent = prometheusAbsent();

describe('alerts', () => {
  it('alerts have names of their own, a severity, a summary and a place in the runbook', () => {
    expect(new Set(names).size).toBe(names.length);
    for (const { alert, labels, annotations } of rules) {
      expect(labels['severity'], alert).toMatch(/^(critical|warning)$/);
      expect(annotations['summary']?.length ?? 0, alert).toBeGreaterThan(20);
      expect(annotations['runbook_url'], alert).toBe(`RUNBOOK.md#${alert.toLowerCase()}`);
    }
  });

  it('alerts have a section each in the runbook, which has no others', () => {
    expect([...sections].sort()).toEqual([...names].sort());
  });

  it('commands of the runbook stand there as one machine and as a cluster run them, and work in the pod for commands', () => {
    const text = readFileSync(runbook, 'utf8');
    const commands = readFileSync(join(root, 'services', 'cli', 'README.md'), 'utf8');
    const asked = [...text.matchAll(/`npx backtalk ([^`]+)`/g)].map(([, command = '']) => command);
    for (const command of asked) {
      expect(text).toContain(`\`kubectl exec deploy/<name>-commands -- backtalk ${command}\``);
      expect(commands).toMatch(new RegExp(`\`${command.replace(/ (?:<.*|all|--.*)$/, '')}\\b`));
    }
    expect(asked.length).toBeGreaterThan(5);
    // Of a machine with compose the introduction says how: the service for commands takes them all.
    expect(text).toContain('`docker compose -f deploy/compose.yaml run --rm commands versions`');
    // It needs an engine, which the pod for commands does not reach.
    expect(text).not.toContain('judge eval');
  });

  it('alerts have a story each in which they fire and one in which they do not', () => {
    expect(alertCases.map(({ alert }) => alert).sort()).toEqual([...names].sort());
  });
});

/** Each alert fires in its first story and is quiet in its second. */
function storiesOf(one: AlertCase): object[] {
  const rule = rules.find(({ alert }) => alert === one.alert);
  const fired = { exp_labels: { ...rule?.labels, ...one.labels }, exp_annotations: rule?.annotations };
  const { release: _release, ...withoutRelease } = fired.exp_labels;
  const bare = { exp_labels: withoutRelease, exp_annotations: rule?.annotations };
  return [
    story(one, 'fires', [fired]),
    ...(one.firesToo === undefined ? [] : [story(one, 'firesToo', [fired])]),
    story(one, 'quiet', []),
    ...(one.quietToo === undefined ? [] : [story(one, 'quietToo', [])]),
    withoutReleases(story(one, 'fires', [bare])),
    withoutReleases(story(one, 'quiet', [])),
  ];
}

/** What promtool says of stories: those of each alert beside its rule alone, since every rule of a file is looked at in each minute of each story. */
function tell(
  cases: readonly AlertCase[],
  from: readonly Group[],
  stories: (one: AlertCase) => readonly object[],
): ReturnType<typeof promtool> {
  const work = mkdtempSync(join(tmpdir(), 'backtalk-alerts-'));
  const told = cases.map((one) => {
    const [rulesFile, file] = [join(work, `${one.alert}.yaml`), join(work, `${one.alert}.test.yaml`)];
    const own = from.map((group) => ({ ...group, rules: group.rules.filter(({ alert }) => alert === one.alert) }));
    writeFileSync(rulesFile, stringify({ groups: own.filter((group) => group.rules.length > 0) }));
    const evaluation = { evaluation_interval: `${stepOf(one)}m`, tests: stories(one) };
    writeFileSync(file, stringify({ rule_files: [rulesFile], ...evaluation }));
    return file;
  });
  const result = promtool(['test', 'rules', ...told]);
  rmSync(work, { recursive: true });
  return result;
}

function stepOf({ minutes = 1 }: AlertCase): number {
  return minutes;
}

function story(one: AlertCase, which: 'fires' | 'firesToo' | 'quiet' | 'quietToo', expected: readonly object[]) {
  return {
    interval: `${stepOf(one)}m`,
    name: `${one.alert} ${which}`,
    input_series: Object.entries(one[which] ?? {}).map(([series, values]) => ({ series, values })),
    alert_rule_test: [{ eval_time: one.at, alertname: one.alert, exp_alerts: expected }],
  };
}

/** As on a machine without a cluster, where one installation is scraped and nothing names a release. */
function withoutReleases(told: ReturnType<typeof story>) {
  const series = told.input_series
    .filter(({ series }) => series.includes(releaseLabel))
    .map(({ series, values }) => ({ series: series.replace(releaseLabel, ''), values }));
  return { interval: told.interval, name: told.name, input_series: series, alert_rule_test: told.alert_rule_test };
}

/** With the chart's own rule: what fires for its release is quiet for another. */
function storiesOfRelease(one: AlertCase, rule: Rule | undefined): object[] {
  const labels = { ...rule?.labels, ...one.labels, namespace, release };
  const fired = { exp_labels: labels, exp_annotations: rule?.annotations };
  const asOurs = (series: string) =>
    series.replaceAll('namespace="n"', `namespace="${namespace}"`).replaceAll('release="r"', `release="${release}"`);
  return [true, false].map((ours) => {
    const { input_series: series, ...rest } = story(one, 'fires', ours ? [fired] : []);
    return { ...rest, input_series: ours ? series.map((one) => ({ ...one, series: asOurs(one.series) })) : series };
  });
}

/** They wait for what the values say. */
const ofTheValues = new Set(['BacktalkComponentMissing', 'BacktalkEngineNotReady']);

describe.skipIf(absent !== undefined)(
  `alerts under promtool${absent === undefined ? '' : ` (skipped: ${absent})`}`,
  () => {
    it.each(files)('the rules in %s are what Prometheus reads', (name) => {
      const { status, said } = promtool(['check', 'rules', join(folder, name)]);
      expect(status, said).toBe(0);
    });

    it('alerts of a release are of that release alone', () => {
      const ofRelease = releaseRules() as unknown as Group[];
      const ruled = ofRelease.flatMap((group) => group.rules).filter(({ alert }) => !ofTheValues.has(alert));
      const cases = alertCases.filter((one) => stepOf(one) === 1 && ruled.some(({ alert }) => alert === one.alert));
      const ruleOf = (one: AlertCase) => ruled.find(({ alert }) => alert === one.alert);
      const { status, said } = tell(cases, ofRelease, (one) => storiesOfRelease(one, ruleOf(one)));
      expect(status, said).toBe(0);
      expect(cases.length).toBeGreaterThan(20);
    }, 300_000);

    it('alerts fire when they should, and only then', () => {
      const { status, said } = tell(alertCases, groups, storiesOf);
      expect(status, said).toBe(0);
    }, 300_000);
  },
);
