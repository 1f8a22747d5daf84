// `npm run write --workspace @backtalk/dashboards`: writes every dashboard into the chart.
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { chartFiles, dashboards, fileOf, grafanaJson } from './grafana.js';

mkdirSync(join(chartFiles, 'dashboards'), { recursive: true });
for (const dashboard of dashboards)
  writeFileSync(join(chartFiles, 'dashboards', fileOf(dashboard.name)), grafanaJson(dashboard));
