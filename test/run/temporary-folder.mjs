// A folder for all temporary files of one run of tests (TMPDIR): of Node, of Python, and of what they start. Workers of Vitest end
// without a word, and what was killed tidies nothing up, so that the run takes away what any of them left; what a run left that was
// killed itself, the next one does.
//
// In: nothing. Out: the call that takes the folder away; nothing in a run that is part of another one. Vitest calls it before the
// first test, and what it gives after the last (`globalSetup`).
import { chmodSync, mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';

/** `freePort` of the kit knows it, too: ports are given once to all runs of a machine. */
const prefix = 'backtalk-run-';

/** @returns {(() => void) | undefined} */
export default function takeTemporaryFolder() {
  const outside = tmpdir();
  if (basename(outside).startsWith(prefix)) return undefined;
  for (const name of readdirSync(outside).filter((found) => found.startsWith(prefix) && !runs(found)))
    rmSync(join(outside, name), { recursive: true, force: true });
  const folder = mkdtempSync(join(outside, `${prefix}${process.pid}-`));
  // Tests that go on as another user find what they made before.
  chmodSync(folder, 0o711);
  process.env['TMPDIR'] = folder;
  return () => {
    process.env['TMPDIR'] = outside;
    // What a test has let go of may still be on its way out.
    rmSync(folder, { recursive: true, force: true, maxRetries: 5 });
  };
}

/**
 * Whether the process of which a folder is still runs.
 *
 * @param {string} name
 */
function runs(name) {
  const pid = Number(name.slice(prefix.length).split('-')[0]);
  // Another's name says nothing of a process.
  if (!Number.isInteger(pid)) return true;
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return !(error instanceof Error && 'code' in error && error.code === 'ESRCH');
  }
}
