// Every file of the chart that is made from something else. In: nothing. Out: paths and what should stand there.
import { join } from 'node:path';
import { permissionsFile } from './broker-permissions.js';
import { readmeFile } from './chart-readme.js';
import { chartFolder } from './helm.js';
import { officialNatsFile } from './official-charts.js';

export interface GeneratedFile {
  readonly path: string;
  readonly text: () => string;
}

export const generatedFiles: readonly GeneratedFile[] = [
  { path: join(chartFolder, 'README.md'), text: readmeFile },
  { path: join(chartFolder, 'files', 'nats-permissions.json'), text: permissionsFile },
  { path: join(chartFolder, 'ci', 'official-charts', 'nats.yaml'), text: officialNatsFile },
];
