// Where the project's Python environment is, which also holds the servers. It looks; it installs nothing.
import { existsSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { readConfig } from '../config/read-config.js';
import { setting } from '../config/setting.js';
import { testingErrors } from './until.js';

const shape = {
  venv: setting.optional(
    setting.path('BACKTALK_VENV', {
      description: 'Python environment with the servers, in place of .venv at the root.',
    }),
  ),
};

export function pythonEnvironment(): string {
  const path = readConfig(shape).venv ?? join(repositoryRoot(), '.venv');
  if (!existsSync(path)) throw testingErrors.environmentMissing({ what: path });
  return path;
}

export function repositoryRoot(): string {
  for (let folder = dirname(fileURLToPath(import.meta.url)); ; folder = dirname(folder)) {
    if (isRoot(join(folder, 'package.json'))) return folder;
    if (folder === dirname(folder)) throw testingErrors.environmentMissing({ what: 'The root of the repository' });
  }
}

function isRoot(manifest: string): boolean {
  if (!existsSync(manifest)) return false;
  const content: unknown = JSON.parse(readFileSync(manifest, 'utf8'));
  return typeof content === 'object' && content !== null && 'name' in content && content.name === 'backtalk';
}
