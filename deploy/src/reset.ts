// Forgets everything: asks first, and not at all while Backtalk runs.
import { existsSync, readdirSync, rmdirSync, rmSync } from 'node:fs';
import { basename, join } from 'node:path';
import { createInterface } from 'node:readline/promises';
import { folderBytes } from '@backtalk/kit';
import { dataFolderAt, type DataFolder } from './data-folder.js';
import { deployErrors } from './errors.js';
import { lockDataFolder } from './folder-lock.js';
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
  const own = namesOf(data);
  const names = readdirSync(data.path);
  const foreign = names.filter((name) => !isOwn(name, own));
  for (const name of names)
    if (isOwn(name, own) && name !== 'lock') rmSync(join(data.path, name), { recursive: true, force: true });
  release();
  if (foreign.length === 0) removeEmpty(data.path);
  else terminal.line(`Left in ${options.data}, since no start made it: ${foreign.join(', ')}`);
  terminal.line('Everything is forgotten: the next start begins from the base model.');
}

/** What another start has made since the lock was let go is its own, and so is where a link leads. */
function removeEmpty(folder: string): void {
  try {
    rmdirSync(folder);
  } catch (error) {
    const isLeft =
      error instanceof Error && 'code' in error && ['ENOTEMPTY', 'ENOTDIR', 'ENOENT'].includes(String(error.code));
    if (!isLeft) throw error;
  }
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
  const own = namesOf({ path, ...within });
  const isBegun = existsSync(within.nats) && existsSync(within.valkey);
  return isBegun && readdirSync(path).every((name) => isOwn(name, own));
}

function namesOf({ path: _path, ...within }: DataFolder): ReadonlySet<string> {
  return new Set(['lock', 'receipt-key.pem', ...Object.values(within).map((place) => basename(place))]);
}

/** What a write leaves that was cut off, a lock in the making, and receipts, too. */
function isOwn(name: string, own: ReadonlySet<string>): boolean {
  return own.has(name.replace(/\.(?:new|part|1)$/, '')) || /^(?:lock\.|forgotten-\d+\.json)/.test(name);
}
