// Writes the files of the chart that are made from something else: `node test/dist/chart/write-generated.js`.
import { spawnSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { repositoryRoot } from '@backtalk/kit/testing';
import { generatedFiles } from './generated-files.js';

for (const { path, text } of generatedFiles) writeFileSync(path, text());
const prettier = join(repositoryRoot(), 'node_modules', '.bin', 'prettier');
spawnSync(prettier, ['--write', ...generatedFiles.map(({ path }) => path)], {
  cwd: repositoryRoot(),
  stdio: 'inherit',
});
