// Every alert of the chart has a fault that fires it on a scratch installation; and what `npm run test:alerts` changes in the rules is durations and nothing else. The faults themselves take minutes: see main.ts.
import { describe, expect, it } from 'vitest';
import { faster } from './faster.js';
import { prometheusOf, releaseRules } from './rendered.js';
import { scenes } from './scenes.js';

const groups = releaseRules();
const rules = groups.flatMap((group) => group.rules);
const fired = new Set(scenes.flatMap(({ faults }) => faults.flatMap(({ fires }) => fires.map(({ alert }) => alert))));

describe('faults', () => {
  it('every alert has a fault, and no other alert is named', () => {
    expect(rules.length).toBeGreaterThan(40);
    expect([...fired].sort()).toEqual(rules.map(({ alert }) => alert).sort());
  });

  it('every component whose absence is told has a fault of its own', () => {
    const absence = rules.find(({ alert }) => alert === 'BacktalkComponentGone')?.expr ?? '';
    const components = new Set([...absence.matchAll(/backtalk_([a-z]+)_/g)].map(([, component]) => component));
    const gone = scenes
      .flatMap(({ faults }) => faults.flatMap(({ fires }) => fires))
      .filter(({ alert }) => alert === 'BacktalkComponentGone')
      .map(({ labels }) => labels?.['job']?.replace(/^engine-serving$/, 'engine'));
    expect(components.size).toBeGreaterThanOrEqual(7);
    expect(gone.sort()).toEqual([...components].sort());
  });
});

describe('rules in faster time', () => {
  const inFasterTime = faster(groups).flatMap((group) => group.rules);
  const durations = /\[\w+\]|\boffset \w+|(?:_age_seconds\) > |time\(\) - \([^()]*\)\) > )[\d.]+/g;

  it('expressions differ in durations alone, and everything else of a rule stays', () => {
    for (const [at, rule] of rules.entries()) {
      const { expr, alert, labels, annotations } = inFasterTime[at] ?? rule;
      expect({ alert, labels, annotations }).toEqual({ alert, labels: rule.labels, annotations: rule.annotations });
      expect(expr.replaceAll(durations, '#')).toBe(rule.expr.replaceAll(durations, '#'));
    }
  });

  it('every duration is divided', () => {
    const again = faster(faster(groups, 60), 1 / 60).flatMap((group) => group.rules);
    const milliseconds = faster(groups, 1).flatMap((group) => group.rules);
    expect(again).toEqual(milliseconds);
    for (const [at, rule] of rules.entries()) {
      if (rule.for !== undefined) expect(inFasterTime[at]?.for).toMatch(/^\d+ms$/);
      for (const [duration] of rule.expr.matchAll(durations)) expect(inFasterTime[at]?.expr).not.toContain(duration);
    }
  });

  it.each([
    ['BacktalkLogprobsDrift', '[1440000ms] offset 60000ms', '10000ms'],
    ['BacktalkStepLong', '> 0)) > 60', '5000ms'],
    ['BacktalkVotesWaiting', '> 2', '5000ms'],
    ['BacktalkFirstTokenSlow', '> 10', '10000ms'],
  ])('%s has %s', (name, piece, waits) => {
    const rule = inFasterTime.find(({ alert }) => alert === name);
    expect(rule?.expr).toContain(piece);
    expect(rule?.for).toBe(waits);
  });
});

describe('the scrape', () => {
  it('gives what it reads the labels of the chart’s ServiceMonitor', () => {
    const target = { component: 'gateway', container: 'gateway', pod: 'p', port: 'health', address: 'a:1' } as const;
    const [health, engine] = prometheusOf([target]).config.scrape_configs;
    expect(health?.static_configs.map(({ targets }) => targets)).toEqual([['a:1']]);
    expect(engine?.static_configs).toEqual([]);
    const labels = health?.relabel_configs.map(({ target_label: label }) => label);
    expect(labels).toEqual(['namespace', 'pod', 'container', 'job', 'job', 'release']);
  });
});
