// Looks at the machine before anything is installed: platform, Node, Python with venv, disk.
// Gives the Python to use; refuses with one line that says what is missing.

import { spawnSync } from 'node:child_process';
import { statfsSync } from 'node:fs';
import { SetupRefusal } from './refusal.mjs';

const nodeLowest = [20, 19];
const pythonCandidates = ['python3.13', 'python3.12', 'python3.11', 'python3', 'python'];
export const freeBytesFirstStart = 4_000_000_000;

export function checkPlatform() {
  if (process.platform !== 'linux' || process.arch !== 'x64') {
    throw new SetupRefusal(
      `Backtalk runs on Linux x86-64; this is ${process.platform} ${process.arch}. Use a Linux machine, a virtual machine or WSL 2.`,
    );
  }
}

export function checkNode(version = process.versions.node) {
  const [major = 0, minor = 0] = version.split('.').map(Number);
  if (major < nodeLowest[0] || (major === nodeLowest[0] && minor < nodeLowest[1])) {
    throw new SetupRefusal(`Node ${version} is too old: install Node 20.19 or later (node --version shows yours).`);
  }
}

function look(python) {
  const script =
    'import sys; print("%d.%d" % sys.version_info[:2]); print(sys.executable)\ntry:\n import ensurepip, venv; print("venv")\nexcept ImportError: print("no-venv")';
  const found = spawnSync(python, ['-c', script], { encoding: 'utf8', timeout: 20_000 });
  if (found.status !== 0) return undefined;
  const [version = '', executable = python, venv = ''] = found.stdout.trim().split('\n');
  const [major, minor] = version.split('.').map(Number);
  return { python: executable, version, fits: major === 3 && minor >= 11 && minor <= 13, venv: venv === 'venv' };
}

export function findPython(candidates = pythonCandidates) {
  const wanted = process.env.BACKTALK_PYTHON;
  const found = (wanted === undefined ? candidates : [wanted]).map(look).filter((one) => one !== undefined);
  const usable = found.find((one) => one.fits && one.venv);
  if (usable !== undefined) return usable.python;
  const withoutVenv = found.find((one) => one.fits);
  if (withoutVenv !== undefined) {
    throw new SetupRefusal(
      `Python ${withoutVenv.version} has no venv module: install it (on Debian and Ubuntu: apt install python${withoutVenv.version}-venv) and start again.`,
    );
  }
  const seen = found.map((one) => one.version).join(', ') || 'none';
  throw new SetupRefusal(
    `Python 3.11, 3.12 or 3.13 is needed (found: ${seen}). Install one, or name it: BACKTALK_PYTHON=/path/to/python3.12 npm start`,
  );
}

export function checkDisk(folder, bytes) {
  const { bavail, bsize } = statfsSync(folder);
  const free = bavail * bsize;
  if (free < bytes) {
    const gigabytes = (value) => (value / 1e9).toFixed(1);
    throw new SetupRefusal(
      `The disk of ${folder} has ${gigabytes(free)} GB free and the start needs ${gigabytes(bytes)} GB: free some space and start again.`,
    );
  }
}
