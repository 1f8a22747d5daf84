// The processes of a start, written down in the data folder: a start that is killed cannot stop them, so the next one does.
import { readFileSync, rmSync, writeFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { killGroup } from './process-group.js';
import { identityOf, stillRuns } from './process-identity.js';

const goneWithinMs = 5_000;

export class ProcessBook {
  private readonly identities = new Map<string, string>();

  constructor(private readonly file: string) {}

  /** A process that is gone already is none to end later. */
  started(name: string, pid: number): void {
    const identity = identityOf(pid);
    if (identity === undefined) return;
    this.identities.set(name, identity);
    try {
      writeFileSync(this.file, JSON.stringify(Object.fromEntries(this.identities)), { mode: 0o600 });
    } catch {
      // A full disk: a start after a kill would have to end these by hand, and nothing is wrong until then.
    }
  }

  /** All of them have been stopped. */
  close(): void {
    rmSync(this.file, { force: true });
  }
}

/** Kills what an earlier start left running, with what it started; gives its names. Whoever calls it holds the folder. */
export async function endSurvivors(file: string): Promise<string[]> {
  const survivors = read(file).flatMap(([name, identity]) => {
    const pid = stillRuns(identity);
    return pid === undefined ? [] : [{ name, identity, pid }];
  });
  for (const { pid } of survivors) killGroup(pid);
  const deadline = performance.now() + goneWithinMs;
  while (survivors.some(({ identity }) => stillRuns(identity) !== undefined) && performance.now() < deadline) {
    await sleep(50);
  }
  rmSync(file, { force: true });
  return survivors.map(({ name }) => name);
}

/** A book that was cut off in mid-writing names nobody. */
function read(file: string): [string, string][] {
  try {
    const book: unknown = JSON.parse(readFileSync(file, 'utf8'));
    return Object.entries(book ?? {}).map(([name, identity]) => [name, String(identity)]);
  } catch {
    return [];
  }
}
