// Prometheus and promtool, with which dashboards and alerts are tested. In: where they shall be. Out: two binaries in
// `.venv/tools/prometheus`, unpacked from the distribution's package without root. Where the package cannot be had it says so,
// and leaves the reason behind: those tests then are skipped by name, and nothing else depends on it.

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
  throw new Error(`${command} ${args.at(-1)}: ${reason}`);
}

/**
 * Downloads the package as the machine's lists name it. Where these are missing or out of date, as in a bare container, it
 * fetches lists of its own, which needs no root.
 */
function download(work) {
  try {
    must('apt-get', ['download', 'prometheus'], work);
  } catch {
    const own = ['Dir::State', 'Dir::Cache', 'Dir::Log'].map((name) => [name, join(work, name.replace('Dir::', ''))]);
    mkdirSync(join(work, 'State', 'lists', 'partial'), { recursive: true });
    mkdirSync(join(work, 'Cache', 'archives', 'partial'), { recursive: true });
    const sandbox = ['-o', 'APT::Sandbox::User=', '-o', 'Debug::NoLocking=1'];
    const options = [...sandbox, ...own.flatMap(([name, folder]) => ['-o', `${name}=${folder}`])];
    must('apt-get', [...options, '--error-on=any', 'update'], work);
    must('apt-get', [...options, 'download', 'prometheus'], work);
  }
}

/** Puts the binaries into `folder`. */
function unpack(folder) {
  const work = mkdtempSync(join(tmpdir(), 'backtalk-prometheus-'));
  try {
    download(work);
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
    say(`! Prometheus cannot be had here (${error.message}): tests of dashboards and alerts that need it are SKIPPED.`);
  }
}
