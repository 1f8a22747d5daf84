// One start at a time has a data folder: takes it for this process, whatever killed starts left, or says who has it.
//
// A lock is a link that leads nowhere, whose target says who holds it: it appears with that or not at all, never in place of
// another's that runs, and needs no room for bytes, since a full disk is when a reset is wanted. After a start that was killed
// follows the one that makes `lock.<it>`, which only one can; and after that one, were it killed in the middle, the one that makes
// `lock.<that>`. Who stands at the end of this chain, and runs, has the folder, and may put its own name into `lock`. One that was
// dead never comes back there, so that a start which was asleep meanwhile finds itself outside of the chain, and changes nothing.
import { readdirSync, readFileSync, readlinkSync, renameSync, symlinkSync, unlinkSync } from 'node:fs';
import { join } from 'node:path';
import type { DataFolder } from './data-folder.js';
import { deployErrors } from './errors.js';
import { identityOf, stillRuns } from './process-record.js';

/** Each try but the last met another start that came or went in between. */
const triesMax = 100;

/** Takes the folder for this process, which may take its own again; gives the call that lets it go. */
export function lockDataFolder({ path }: Pick<DataFolder, 'path'>): () => void {
  const lock = join(path, 'lock');
  const own = identityOf(process.pid) ?? '?';
  let holder: string | undefined = '';
  for (let tries = 0; tries < triesMax && holder !== undefined && !runs(holder); tries += 1)
    holder = holderInstead(lock, own);
  if (holder !== undefined) throw deployErrors.running({ folder: path, pid: stillRuns(holder) ?? 0 });
  sweep(path);
  return () => {
    // Of another start it is none of this one's, whatever took it away meanwhile.
    if (textOf(lock) === own) remove(lock);
  };
}

/** Undefined: this start. Else who has it, or had it and let go in between. */
function holderInstead(lock: string, own: string): string | undefined {
  if (hasLinked(own, lock)) return undefined;
  const last = lastIn(lock);
  if (last === own) return undefined;
  if (last === undefined || runs(last)) return last ?? '';
  const claim = claimAfter(lock, last);
  if (!hasLinked(own, claim)) return '';
  if (lastIn(lock) !== own) {
    remove(claim);
    return '';
  }
  const beside = `${lock}.new.${own}`;
  hasLinked(own, beside);
  // At no moment is there no lock, which another start would take for a folder that is free.
  renameSync(beside, lock);
  return undefined;
}

const runs = (identity: string) => stillRuns(identity) !== undefined;

/** Who stands at the end of the chain that begins with the lock; undefined where there is no lock. */
function lastIn(lock: string): string | undefined {
  const seen = new Set<string>();
  let last: string | undefined;
  for (let next = textOf(lock); next !== undefined && !seen.has(next); next = textOf(claimAfter(lock, next))) {
    seen.add(next);
    last = next;
  }
  return last;
}

/** What an earlier release, or a hand, wrote into a lock becomes part of a name. */
const claimAfter = (lock: string, identity: string) => `${lock}.${identity.replaceAll(/[^\w:]/g, '_').slice(0, 64)}`;

/** What killed starts left, and an earlier release: while this start holds the lock, no claim leads to it. */
function sweep(folder: string): void {
  for (const name of readdirSync(folder)) if (name.startsWith('lock.')) remove(join(folder, name));
}

/** Undefined where there is no such lock, or no more. An earlier release wrote a file. */
function textOf(lock: string): string | undefined {
  let text = '';
  const isThere = isDone('ENOENT', () => {
    if (!isDone('EINVAL', () => (text = readlinkSync(lock)))) text = readFileSync(lock, 'utf8');
  });
  return isThere ? text : undefined;
}

const hasLinked = (identity: string, lock: string) => isDone('EEXIST', () => symlinkSync(identity, lock));
/** `rmSync` of some releases of Node leaves a link that leads nowhere. */
const remove = (lock: string) => isDone('ENOENT', () => unlinkSync(lock));

/** False where the one expected thing was in the way. */
function isDone(expected: string, work: () => unknown): boolean {
  try {
    work();
    return true;
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === expected) return false;
    throw error;
  }
}
