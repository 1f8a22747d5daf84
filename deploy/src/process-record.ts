// The processes of a start, written down in the data folder: a start that is killed cannot stop them, so the next one does.
import { readFileSync, rmSync, writeFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';

const goneWithinMs = 5_000;
/** Where the time of start stands among the fields after the program's name (proc(5), field 22). */
const startField = 19;

export class ProcessRecord {
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

/** Kills what an earlier start left running, with what it started; gives its names. The caller holds the folder's lock. */
export async function endSurvivors(file: string): Promise<string[]> {
  let recorded: [string, string][] = [];
  try {
    const record: unknown = JSON.parse(readFileSync(file, 'utf8'));
    recorded = Object.entries(record ?? {}).map(([name, identity]) => [name, String(identity)]);
  } catch {
    // A record that was cut off in mid-writing names no process.
  }
  const survivors = recorded.flatMap(([name, identity]) => {
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

/** `<pid>:<time of start>`, because numbers are given out again; undefined when no such process runs. */
export function identityOf(pid: number): string | undefined {
  try {
    const stat = readFileSync(`/proc/${String(pid)}/stat`, 'utf8');
    // The name may hold blanks and brackets itself.
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
    return fields[0] === 'Z' ? undefined : `${String(pid)}:${fields[startField] ?? ''}`;
  } catch {
    return undefined;
  }
}

/** The process that is meant, if it still runs. */
export function stillRuns(identity: string): number | undefined {
  const pid = Number.parseInt(identity, 10);
  return Number.isInteger(pid) && identityOf(pid) === identity ? pid : undefined;
}

/** Ends a process of the machine, which leads a group of its own, with all that it started. */
export function killGroup(leader: number): void {
  try {
    process.kill(-leader, 'SIGKILL');
  } catch (error) {
    // ESRCH means that the group is gone already, which is what was wanted.
    if (!(error instanceof Error && 'code' in error && error.code === 'ESRCH')) throw error;
  }
}
