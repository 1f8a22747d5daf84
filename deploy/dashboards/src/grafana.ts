// From a written dashboard to the JSON that Grafana reads. In: rows of panels. Out: a dashboard with variables, annotations,
// numbered panels on a grid. It is the classic form, which every Grafana from 9 on takes from a ConfigMap.
/* eslint-disable @typescript-eslint/no-deprecated -- The newer form needs Grafana 12; the classic one is read by all. */
import { fileURLToPath } from 'node:url';
import { gateway } from './boards/gateway.js';
import { judge } from './boards/judge.js';
import { loop } from './boards/loop.js';
import { pools } from './boards/pools.js';
import { swaps } from './boards/swaps.js';
import { training } from './boards/training.js';
import { PanelBuilder as BarsBuilder } from '@grafana/grafana-foundation-sdk/bargauge';
import type * as cog from '@grafana/grafana-foundation-sdk/cog';
import {
  GraphDrawStyle,
  GraphThresholdsStyleConfigBuilder,
  GraphThresholdsStyleMode,
  BigValueGraphMode,
  LegendDisplayMode,
  LegendPlacement,
  ReduceDataOptionsBuilder,
  StackingConfigBuilder,
  StackingMode,
  VizLegendOptionsBuilder,
  VizOrientation,
} from '@grafana/grafana-foundation-sdk/common';
import {
  AnnotationQueryBuilder,
  DashboardBuilder,
  DashboardCursorSync,
  DashboardLinkBuilder,
  DashboardLinkType,
  DatasourceVariableBuilder,
  QueryVariableBuilder,
  RowBuilder,
  ThresholdsConfigBuilder,
  ThresholdsMode,
  VariableRefresh,
  type Panel as GrafanaPanel,
} from '@grafana/grafana-foundation-sdk/dashboard';
import { DataqueryBuilder } from '@grafana/grafana-foundation-sdk/prometheus';
import { PanelBuilder as NumberBuilder } from '@grafana/grafana-foundation-sdk/stat';
import { PanelBuilder as LinesBuilder } from '@grafana/grafana-foundation-sdk/timeseries';
import { happened, versionChange } from './queries.js';
import type { Bounds, Dashboard, Panel, PanelKind, Row } from './spec.js';

const datasource = { type: 'prometheus', uid: '${datasource}' };
const tag = 'backtalk';
const gridWidth = 24;
const widths: Readonly<Record<PanelKind, number>> = { lines: 8, stacked: 8, number: 6, bars: 24 };
const heights: Readonly<Record<PanelKind, number>> = { lines: 8, stacked: 8, number: 5, bars: 8 };

/** Of the file and of the object: Grafana’s sidecar puts the files of all products into one folder. */
export function fileOf(name: string): string {
  return `backtalk-${name}.json`;
}

export function grafanaJson({ name, title, description, byPolicy, byPool = false, rows }: Dashboard): string {
  const otherDashboards = new DashboardLinkBuilder('Backtalk')
    .type(DashboardLinkType.Dashboards)
    .tags([tag])
    .asDropdown(true)
    .keepTime(true)
    .includeVars(true);
  const builder = new DashboardBuilder(title)
    .uid(`backtalk-${name}`)
    .description(description)
    .tags([tag])
    .refresh('30s')
    .time({ from: 'now-3h', to: 'now' })
    .timezone('browser')
    .tooltip(DashboardCursorSync.Crosshair)
    .link(otherDashboards)
    .withVariable(new DatasourceVariableBuilder('datasource').label('Data source').type('prometheus'))
    .withVariable(choice('namespace', 'Namespace', 'label_values(backtalk_gateway_requests_in_hand, namespace)'))
    .withVariable(
      choice('release', 'Release', 'label_values(backtalk_gateway_requests_in_hand{namespace=~"$namespace"}, release)'),
    );
  if (byPolicy)
    builder.withVariable(choice('policy', 'Policy', 'label_values(backtalk_trainer_version_number, policy)'));
  if (byPool)
    builder.withVariable(
      choice(
        'pool',
        'Pool',
        'label_values(vllm:num_requests_running{namespace=~"$namespace", release=~"$release"}, job)',
      ),
    );
  for (const each of annotations()) builder.annotation(each);
  placeRows(builder, rows);
  return `${JSON.stringify(builder.build(), null, 2)}\n`;
}

/** All is the default, and matches series without the label too: one machine has no namespace. */
function choice(name: string, label: string, query: string): QueryVariableBuilder {
  return new QueryVariableBuilder(name)
    .label(label)
    .datasource(datasource)
    .query(query)
    .refresh(VariableRefresh.OnTimeRangeChanged)
    .multi(true)
    .includeAll(true)
    .allValue('.*')
    .current({ text: 'All', value: '$__all' });
}

function annotations(): AnnotationQueryBuilder[] {
  const marks = [
    { name: 'Versions', color: 'green', title: '{{policy}}-v{{version}} answers', expr: versionChange },
    {
      name: 'Burned versions',
      color: 'red',
      title: 'A version was burned',
      expr: happened('backtalk_publisher_versions_total', 'stage="burned"'),
    },
    { name: 'Rollbacks', color: 'orange', title: 'Rolled back', expr: happened('backtalk_publisher_rollbacks_total') },
  ];
  return marks.map(({ name, color, title, expr }) =>
    new AnnotationQueryBuilder()
      .name(name)
      .datasource(datasource)
      .enable(true)
      .iconColor(color)
      .expr(expr)
      .step('60s')
      .titleFormat(title),
  );
}

/** Panels are placed by hand, so that their numbers and places are the same whenever the same dashboard is written. */
function placeRows(builder: DashboardBuilder, rows: readonly Row[]): void {
  let id = 0;
  let y = 0;
  for (const { title, panels } of rows) {
    id += 1;
    builder.withRow(new RowBuilder(title).id(id).gridPos({ x: 0, y, w: gridWidth, h: 1 }));
    y += 1;
    let x = 0;
    let lineHeight = 0;
    for (const panel of panels) {
      const w = panel.width ?? widths[panel.kind];
      const h = heights[panel.kind];
      if (x + w > gridWidth) {
        y += lineHeight;
        x = 0;
        lineHeight = 0;
      }
      id += 1;
      builder.withPanel(builderOf(panel, id, { x, y, w, h }));
      x += w;
      lineHeight = Math.max(lineHeight, h);
    }
    y += lineHeight;
  }
}

function builderOf(panel: Panel, id: number, place: { x: number; y: number; w: number; h: number }) {
  const builder = ofKind(panel.kind)
    .id(id)
    .title(panel.title)
    .description(panel.description)
    .datasource(datasource)
    .unit(panel.unit)
    .gridPos(place)
    .targets(
      panel.queries.map(({ expr, legend }, at) => {
        const query = new DataqueryBuilder()
          .refId(String.fromCharCode('A'.charCodeAt(0) + at))
          .datasource(datasource)
          .expr(expr)
          .legendFormat(legend);
        return panel.kind === 'bars' ? query.instant() : query.range();
      }),
    );
  if (panel.bounds !== undefined) drawBounds(builder, panel.bounds);
  if (panel.min !== undefined) builder.min(panel.min);
  if (panel.max !== undefined) builder.max(panel.max);
  return builder satisfies cog.Builder<GrafanaPanel>;
}

function drawBounds(builder: ReturnType<typeof ofKind>, { above, below }: Bounds): void {
  const start = { value: null, color: below === undefined ? 'green' : 'red' };
  const lower = below === undefined ? [] : [{ value: below, color: 'green' }];
  const upper = above === undefined ? [] : [{ value: above, color: 'red' }];
  builder.thresholds(new ThresholdsConfigBuilder().mode(ThresholdsMode.Absolute).steps([start, ...lower, ...upper]));
  if (builder instanceof LinesBuilder)
    builder.thresholdsStyle(new GraphThresholdsStyleConfigBuilder().mode(GraphThresholdsStyleMode.Dashed));
}

function ofKind(kind: PanelKind): LinesBuilder | NumberBuilder | BarsBuilder {
  switch (kind) {
    case 'lines':
      return overTime();
    case 'stacked':
      return overTime().stacking(new StackingConfigBuilder().mode(StackingMode.Normal)).fillOpacity(40);
    case 'number':
      return new NumberBuilder().graphMode(BigValueGraphMode.Area).reduceOptions(lastValue());
    case 'bars':
      return new BarsBuilder().orientation(VizOrientation.Horizontal).reduceOptions(lastValue());
  }
}

function overTime(): LinesBuilder {
  return new LinesBuilder()
    .drawStyle(GraphDrawStyle.Line)
    .lineWidth(1)
    .fillOpacity(8)
    .axisSoftMin(0)
    .legend(
      new VizLegendOptionsBuilder()
        .displayMode(LegendDisplayMode.List)
        .placement(LegendPlacement.Bottom)
        .showLegend(true),
    );
}

function lastValue(): ReduceDataOptionsBuilder {
  return new ReduceDataOptionsBuilder().calcs(['lastNotNull']);
}

/** In the order in which an operator reads them. */
export const dashboards: readonly Dashboard[] = [loop, gateway, judge, training, swaps, pools];

/** The same from src/ and from dist/. */
export const root = fileURLToPath(new URL('../../..', import.meta.url));
export const chartFiles = fileURLToPath(new URL('../../../charts/backtalk/files', import.meta.url));
