// A stand-in of S3, with which the blob store is tested. Takes the main environment's folder; gives `.venv/s3` with moto's
// server, apart because its packages are nobody else's. Where they cannot be had it says so in one line and leaves the
// reason behind: those tests then report themselves as skipped, and nothing else depends on it.

import { existsSync, mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { runStep } from './command.mjs';
import { SetupRefusal } from './refusal.mjs';
import { digestOf, isStamped, stamp } from './stamp.mjs';
import { say } from './terminal.mjs';

/** The main environment's pip installs into the other, which saves the time of one more pip. */
async function install(venv, folder, requirements, context) {
  const [main, own] = [venv, folder].map((environment) => join(environment, 'bin', 'python'));
  if (!existsSync(own))
    await runStep('a virtual environment for S3', main, ['-m', 'venv', '--without-pip', folder], context);
  const pip = ['-m', 'pip', '--python', own, 'install', '--no-compile', '--progress-bar', 'off'];
  await runStep('S3 for tests', main, [...pip, '--require-hashes', '--no-deps', '-r', requirements], context);
}

/** One line: pip's own, where it gives one. */
function reasonOf({ message }) {
  const [first, ...more] = message.split('\n');
  return more.findLast((line) => line.startsWith('ERROR: ')) ?? first;
}

export async function setUpS3(venv, context) {
  const folder = join(venv, 's3');
  const requirements = join(context.root, 'deploy', 'requirements-s3.lock.txt');
  const stampFile = join(folder, 'installed');
  const digest = digestOf([requirements]);
  if (isStamped(stampFile, digest)) return;
  mkdirSync(folder, { recursive: true });
  const absent = join(folder, 'absent.txt');
  try {
    await install(venv, folder, requirements, context);
  } catch (error) {
    if (!(error instanceof SetupRefusal)) throw error;
    const reason = reasonOf(error);
    writeFileSync(absent, `${reason}\n`);
    say(`A stand-in of S3 cannot be had here (${reason}): tests of the store s3 are skipped.`);
    return;
  }
  rmSync(absent, { force: true });
  stamp(stampFile, digest);
}
