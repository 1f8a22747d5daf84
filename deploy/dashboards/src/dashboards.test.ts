import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parser } from '@prometheus-io/lezer-promql';
import { describe, expect, it } from 'vitest';
import { chartFiles, dashboards, fileOf, grafanaJson, root } from './grafana.js';

const folder = join(chartFiles, 'dashboards');
const panels = dashboards.flatMap(({ name, rows }) =>
  rows.flatMap((row) => row.panels.map((panel) => ({ at: `${name}: ${panel.title}`, panel }))),
);
const queries = panels.flatMap(({ at, panel }) => panel.queries.map(({ expr }) => ({ at, expr })));
const readmes = readdirSync(join(root, 'services'))
  .filter((name) => !['lib'].includes(name))
  .map((name) => readFileSync(join(root, 'services', name, 'README.md'), 'utf8'))
  .concat(readFileSync(join(root, 'services', 'lib', 'kit', 'README.md'), 'utf8'))
  .join('\n');
const recorded = readFileSync(new URL('../fixtures/vllm-0.32-metrics.txt', import.meta.url), 'utf8').split('\n');

/** Histograms are documented by their own name. */
function plain(metric: string): string {
  return metric.replace(/_(bucket|sum|count)$/, '');
}

function isDocumented(metric: string): boolean {
  const general = metric.replace(/^backtalk_(collector|judge|trainer|publisher)_(facts|jobs)_/, 'backtalk_SERVICE_$2_');
  return [metric, plain(metric), general].some((name) => readmes.includes(`\`${name}\``));
}

describe('dashboards', () => {
  it.each(dashboards.map((dashboard) => [dashboard.name, dashboard] as const))(
    'the dashboard %s in the chart is current',
    (name, dashboard) => {
      const stored: unknown = JSON.parse(readFileSync(join(folder, fileOf(name)), 'utf8'));
      expect(stored).toEqual(JSON.parse(grafanaJson(dashboard)));
    },
  );

  it('the chart holds all dashboards and no others', () => {
    expect(readdirSync(folder).sort()).toEqual(dashboards.map(({ name }) => fileOf(name)).sort());
  });

  it('every panel has an explanation for a reader who has never read the code', () => {
    for (const { at, panel } of panels) expect(panel.description.length, at).toBeGreaterThan(40);
    expect(new Set(panels.map(({ at }) => at)).size).toBe(panels.length);
  });

  it('bounds that panels draw are those of the alerts that they name', () => {
    const alerts = readFileSync(join(chartFiles, 'alerts', 'backtalk.yaml'), 'utf8').split('- alert: ');
    const bounded = panels.flatMap(({ at, panel: { bounds } }) => (bounds === undefined ? [] : [{ at, bounds }]));
    for (const { at, bounds } of bounded) {
      const rule = alerts.find((text) => text.startsWith(`${bounds.alert}\n`)) ?? '';
      const limits = [...rule.matchAll(/(?<=[<>] )[\d.]+$/gm)].map(([limit]) => Number(limit));
      const around = rule.includes('} - 1)') ? 1 : 0;
      const same = (bound: number) =>
        limits.some((limit) =>
          [limit, 1 - limit, around + limit, around - limit].some((one) => Math.abs(one - bound) < 1e-9),
        );
      for (const bound of [bounds.above, bounds.below])
        if (bound !== undefined) expect(same(bound), `${at}: ${String(bound)}`).toBe(true);
    }
    expect(bounded.length).toBeGreaterThanOrEqual(10);
  });

  it('legends name pods, never addresses alone', () => {
    const legends = panels.flatMap(({ panel }) => panel.queries.map(({ legend }) => legend));
    expect(legends.filter((legend) => legend.includes('{{instance}}'))).toEqual([]);
    expect(legends.filter((legend) => legend.includes('{{pod}}')).length).toBeGreaterThan(20);
  });

  it('panels stand on metrics that the services document', () => {
    const used = queries.flatMap(({ at, expr }) =>
      [...expr.matchAll(/\bbacktalk_[a-z0-9_]+(?=\{)/g)].map(([metric]) => ({ at, metric })),
    );
    expect(used.filter(({ metric }) => !isDocumented(metric))).toEqual([]);
    expect(used.length).toBeGreaterThan(100);
  });

  it('metrics that services document are shown by a panel, watched by an alert, or read by a command', () => {
    const alerts = readFileSync(join(chartFiles, 'alerts', 'backtalk.yaml'), 'utf8');
    const commands = readdirSync(join(root, 'services', 'cli', 'src'), { recursive: true, encoding: 'utf8' })
      .filter((name) => name.endsWith('.ts') && !name.endsWith('.test.ts'))
      .map((name) => readFileSync(join(root, 'services', 'cli', 'src', name), 'utf8'));
    const readers = [...queries.map(({ expr }) => expr), alerts, ...commands].join('\n');
    const names = [...readmes.matchAll(/^\|\s*`(backtalk_\w+)`/gm)].map(([, name = '']) => name);
    // An alert can name metrics by a pattern.
    const patterns = [...alerts.matchAll(/__name__=~"([^"]+)"/g)].map(([, pattern]) => new RegExp(`^(?:${pattern})$`));
    const isRead = (name: string) =>
      patterns.some((pattern) => pattern.test(name)) ||
      new RegExp(`\\b${name.replace('SERVICE', '(?:[a-z]+|\\.\\+|\\[a-z\\]\\+)')}(?:_bucket|_sum|_count)?\\b`).test(
        readers,
      );
    expect(names.filter((name) => !isRead(name))).toEqual([]);
    expect(names.length).toBeGreaterThan(100);
  });

  it('panels on engines stand on metrics that vLLM 0.32 exports under the same names', () => {
    const used = queries.flatMap(({ expr }) => [...expr.matchAll(/\bvllm:[a-z0-9_]+/g)].map(([metric]) => metric));
    expect(used.filter((metric) => !recorded.includes(plain(metric)) && !recorded.includes(metric))).toEqual([]);
    expect(used.length).toBeGreaterThan(5);
  });

  it('panels show only figures of a step that the training worker measures', () => {
    const worker = join(root, 'services', 'worker', 'src', 'backtalk_worker', 'training', 'domain');
    const source = ['step.py', 'observation.py'].map((file) => readFileSync(join(worker, file), 'utf8')).join('\n');
    const names = queries.flatMap(({ expr }) =>
      (/step_measurement\{[^}]*\bname=~"([^"]+)"/.exec(expr)?.[1] ?? '').split('|'),
    );
    expect(names.filter((name) => name !== '' && !source.includes(`"${name}"`))).toEqual([]);
    expect(names.filter((name) => name !== '').length).toBeGreaterThan(15);
  });

  it.each(queries)('the expression at $at is PromQL: $expr', ({ expr }) => {
    const text = expr.replaceAll(/\$__\w+/g, '1m');
    const broken: number[] = [];
    parser.parse(text).iterate({
      enter: ({ type, from }) => {
        if (type.isError) broken.push(from);
      },
    });
    expect(broken, text).toEqual([]);
  });

  it('panels lie beside each other, never upon each other', () => {
    for (const dashboard of dashboards) {
      const { panels: placed } = JSON.parse(grafanaJson(dashboard)) as {
        panels: { id: number; gridPos: { x: number; y: number; w: number; h: number } }[];
      };
      expect(new Set(placed.map(({ id }) => id)).size).toBe(placed.length);
      const cells = placed.flatMap(({ gridPos: { x, y, w, h } }) =>
        Array.from({ length: w * h }, (_, at) => `${String(x + (at % w))}:${String(y + Math.floor(at / w))}`),
      );
      expect(new Set(cells).size, dashboard.name).toBe(cells.length);
    }
  });
});
