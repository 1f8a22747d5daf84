// What other packages may take from here.
export { dashboards } from './dashboards.js';
export { grafanaJson } from './grafana.js';
export type { Dashboard, Panel, Query, Row } from './spec.js';
