// Forgets everything: asks first, and not at all while Backtalk runs.
import { existsSync, readdirSync, rmSync } from 'node:fs';
import { basename } from 'node:path';
import { createInterface } from 'node:readline/promises';
import { folderBytes } from '@backtalk/kit';
import { dataFolderAt, lockDataFolder, type DataFolder } from './data-folder.js';
import { deployErrors } from './errors.js';
import { endSurvivors } from './process-record.js';
import type { Options } from './options.js';
import type { Terminal } from './terminal.js';

export async function resetMachine(options: Options, terminal: Terminal): Promise<void> {
  if (!existsSync(options.data)) {
    terminal.line(`Nothing to forget: ${options.data} does not exist.`);
    return;
  }
  const data = dataFolderAt(options.data);
  if (!isOurs(data)) throw deployErrors.noDataFolder({ folder: options.data });
  const release = lockDataFolder(data);
  const size = (folderBytes(options.data) / 1e6).toFixed(0);
  if (
    !options.yes &&
    !(await confirm(`Delete every turn, judgement and weights version in ${options.data} (${size} MB)? [y/N] `))
  ) {
    release();
    terminal.line(process.stdin.isTTY ? 'Nothing was deleted.' : 'Nothing was deleted: say --yes.');
    process.exitCode = 1;
    return;
  }
  await endSurvivors(data.processes);
  // Secrets go too, so every keyed hash of the next start is another one.
  rmSync(options.data, { recursive: true, force: true });
  terminal.line(`${options.data} is empty: the next start begins from the base model.`);
}

async function confirm(question: string): Promise<boolean> {
  if (!process.stdin.isTTY) return false;
  const prompt = createInterface({ input: process.stdin, output: process.stdout });
  try {
    return /^y(es)?$/i.test((await prompt.question(question)).trim());
  } catch {
    // Ctrl-C and Ctrl-D are no yes.
    return false;
  } finally {
    prompt.close();
  }
}

/** A start made it, as far as it came: there are secrets, or nothing but what starts make. */
function isOurs({ path, ...within }: DataFolder): boolean {
  if (existsSync(within.secrets)) return true;
  const own = new Set(['lock', ...Object.values(within).map((place) => basename(place))]);
  const isBegun = existsSync(within.nats) && existsSync(within.valkey);
  return isBegun && readdirSync(path).every((name) => own.has(name) || name.startsWith('lock.'));
}
