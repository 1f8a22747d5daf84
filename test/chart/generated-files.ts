// Every file of the chart that is made from something else. In: nothing. Out: paths and what should stand there.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { callPairs, calls, tokenVariable } from '@backtalk/kit';
import { parse, stringify } from 'yaml';
import { permissionsFile } from './broker-permissions.js';
import { readmeFile } from './chart-readme.js';
import { chartFolder } from './helm.js';
import { officialNatsFile } from './official-charts.js';

export interface GeneratedFile {
  readonly path: string;
  readonly text: () => string;
}

/** Templates cannot read values.yaml, and an upgrade with --reuse-values brings the one of the chart before. */
function defaultsFile(): string {
  const values: unknown = parse(readFileSync(join(chartFolder, 'values.yaml'), 'utf8'));
  return `# What values.yaml says, for values that are missing. Made by write-generated.\n${stringify(values)}`;
}

/** Who calls whom, and where the secret of the two stands. */
function callsFile(): string {
  const rows = callPairs.map((pair) => {
    const { caller, callee } = calls[pair];
    return { caller, callee, variable: tokenVariable(pair), key: `call-${caller}-${callee}` };
  });
  return `${JSON.stringify(rows, null, 2)}\n`;
}

export const generatedFiles: readonly GeneratedFile[] = [
  { path: join(chartFolder, 'README.md'), text: readmeFile },
  { path: join(chartFolder, 'files', 'defaults.yaml'), text: defaultsFile },
  { path: join(chartFolder, 'files', 'calls.json'), text: callsFile },
  { path: join(chartFolder, 'files', 'nats-permissions.json'), text: permissionsFile },
  { path: join(chartFolder, 'ci', 'official-charts', 'nats.yaml'), text: officialNatsFile },
];
