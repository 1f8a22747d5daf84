// Which process a number meant when it was written down. Numbers are given out again, but with another time of start.
import { readFileSync } from 'node:fs';

/** Where the time of start stands among the fields after the program's name (proc(5), field 22). */
const startField = 19;

/** `<pid>:<time of start>`; undefined when no such process runs. */
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
