// Every query that Grafana would send for the chart's dashboards, as the JSON in the chart has it: of panels and of
// annotations. In: values for the variables. Out: queries that Prometheus can run.
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { root } from '../loop/machine.js';

export interface DashboardQuery {
  readonly dashboard: string;
  /** Title of the panel, or name of the annotation. */
  readonly place: string;
  readonly expr: string;
}

interface Target {
  readonly expr?: string;
}

interface DashboardJson {
  readonly panels?: readonly { readonly title?: string; readonly targets?: readonly Target[] }[];
  readonly annotations?: { readonly list?: readonly { readonly name: string; readonly expr?: string }[] };
}

export type Variables = Readonly<Record<string, string>>;

const folder = join(root, 'charts', 'backtalk', 'files', 'dashboards');

export function dashboardQueries(): DashboardQuery[] {
  return readdirSync(folder)
    .filter((file) => file.endsWith('.json'))
    .flatMap((file) => queriesOf(file, JSON.parse(readFileSync(join(folder, file), 'utf8')) as DashboardJson));
}

function queriesOf(file: string, { panels = [], annotations }: DashboardJson): DashboardQuery[] {
  const dashboard = file.replace(/^backtalk-|\.json$/g, '');
  const ofPanels = panels.flatMap(({ title = '', targets = [] }) =>
    targets.map(({ expr = '' }) => ({ dashboard, place: title, expr })),
  );
  const ofAnnotations = (annotations?.list ?? []).map(({ name, expr = '' }) => ({ dashboard, place: name, expr }));
  return [...ofPanels, ...ofAnnotations];
}

/** As Grafana fills them in; one that is left over is a mistake. */
export function filled(expr: string, variables: Variables): string {
  const text = expr.replaceAll(/\$(\w+)/g, (all, name: string) => variables[name] ?? all);
  const [left] = /\$[a-z_]\w*/i.exec(text) ?? [];
  if (left !== undefined) throw new SyntaxError(`Nothing is known of ${left} in ${expr}`);
  return text;
}

/** Metrics of engines, which a stand-in does not have. */
export function needsEngine({ expr }: DashboardQuery): boolean {
  return /\bvllm:|\bbacktalk_(training|engine)_|"\.\*\(engine\|/.test(expr);
}

/** Metrics of exporters that only a cluster has. */
export function needsCluster({ expr }: DashboardQuery): boolean {
  return /\b(kube_|DCGM_)/.test(expr);
}
