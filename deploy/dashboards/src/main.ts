// `npm run write --workspace @backtalk/dashboards`: writes every dashboard into the chart.
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { dashboards } from './dashboards.js';
import { grafanaJson } from './grafana.js';
import { chartFiles } from './places.js';

mkdirSync(join(chartFiles, 'dashboards'), { recursive: true });
for (const dashboard of dashboards)
  writeFileSync(join(chartFiles, 'dashboards', `${dashboard.name}.json`), grafanaJson(dashboard));
