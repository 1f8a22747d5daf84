// npm packages and the TypeScript build, each skipped while what it is made from is unchanged.

import { existsSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { runStep } from './command.mjs';
import { digestOf, isStamped, stamp } from './stamp.mjs';

const quietEnvironment = { TURBO_TELEMETRY_DISABLED: '1', DO_NOT_TRACK: '1' };

export async function installNodePackages(context) {
  const stampFile = join(context.root, 'node_modules', '.backtalk-installed');
  const digest = digestOf([join(context.root, 'package-lock.json')], process.versions.node);
  if (isStamped(stampFile, digest)) return;
  const arguments_ = ['ci', '--no-audit', '--no-fund', '--loglevel=http'];
  await runStep('npm packages', 'npm', arguments_, context);
  stamp(stampFile, digest);
}

/** Every file that the build reads, in a fixed order. */
function sources(folder) {
  const skipped = new Set(['node_modules', 'dist', 'gen', '.turbo', '.venv', '.backtalk', '.git', 'worker']);
  return readdirSync(folder, { withFileTypes: true })
    .sort((a, b) => a.name.localeCompare(b.name))
    .flatMap((entry) => {
      const path = join(folder, entry.name);
      if (entry.isDirectory()) return skipped.has(entry.name) ? [] : sources(path);
      return /\.(ts|proto|json|yaml)$/.test(entry.name) ? [path] : [];
    });
}

export async function build(context) {
  const stampFile = join(context.root, 'node_modules', '.backtalk-built');
  const folders = ['proto', 'services', 'deploy', 'test'].map((name) => join(context.root, name));
  const digest = digestOf([join(context.root, 'tsconfig.base.json'), ...folders.flatMap(sources)]);
  if (isStamped(stampFile, digest) && existsSync(join(context.root, 'deploy', 'dist', 'main.js'))) return;
  await runStep('build', 'npx', ['--no-install', 'turbo', 'run', 'build'], context, quietEnvironment);
  stamp(stampFile, digest);
}
