// Prometheus and promtool, with which dashboards and alerts are tested. In: where they shall be. Out: two binaries in
// `.venv/tools/prometheus`, unpacked from Debian's package without root. Where the package cannot be had it says so in one
// line and leaves the reason behind: those tests then report themselves as skipped, and nothing else depends on it.

import { spawnSync } from 'node:child_process';
import {
  chmodSync,
  copyFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pythonPaths } from './python.mjs';
import { say } from './terminal.mjs';

const names = ['prometheus', 'promtool'];
const withinMs = 300_000;

/** Throws with the first line that the command complains in. */
function must(command, args, cwd) {
  const { status, stderr, error } = spawnSync(command, args, { cwd, encoding: 'utf8', timeout: withinMs });
  if (status === 0) return;
  const [reason = `ended with status ${status}`] = (error?.message ?? stderr).trim().split('\n');
  throw new Error(`${command} ${args[0]}: ${reason}`);
}

/** Puts the binaries into `folder`, from the package of the distribution. */
function unpack(folder) {
  const work = mkdtempSync(join(tmpdir(), 'backtalk-prometheus-'));
  try {
    must('apt-get', ['download', 'prometheus'], work);
    const [archive = ''] = readdirSync(work).filter((name) => name.endsWith('.deb'));
    must('dpkg', ['-x', archive, 'unpacked'], work);
    for (const name of names) {
      copyFileSync(join(work, 'unpacked', 'usr', 'bin', name), join(folder, name));
      chmodSync(join(folder, name), 0o755);
    }
  } finally {
    rmSync(work, { recursive: true, force: true });
  }
}

export function setUpPrometheus({ root }) {
  const folder = join(pythonPaths(root).venv, 'tools', 'prometheus');
  if (names.every((name) => existsSync(join(folder, name)))) return;
  mkdirSync(folder, { recursive: true });
  const reason = join(folder, 'absent.txt');
  try {
    unpack(folder);
    rmSync(reason, { force: true });
  } catch (error) {
    writeFileSync(reason, `${error.message}\n`);
    say(`Prometheus cannot be had here (${error.message}): tests of dashboards and alerts that need it are skipped.`);
  }
}
