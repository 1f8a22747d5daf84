// `npm run write --workspace @backtalk/dashboards`: writes every dashboard into the chart.
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { chartFiles, dashboards, grafanaJson } from './grafana.js';

mkdirSync(join(chartFiles, 'dashboards'), { recursive: true });
for (const dashboard of dashboards)
  writeFileSync(join(chartFiles, 'dashboards', `${dashboard.name}.json`), grafanaJson(dashboard));
