// What the kernel says about a process: CPU time and resident memory. In: a process id. Out: numbers.
// It reads the process's own accounting, so whatever else runs on the machine is not in it.
import { readFileSync } from 'node:fs';

/** Linux counts in hundredths of a second, on every architecture that Node runs on. */
const microsecondsPerTick = 10_000;

/** User and system time together, of all threads, since the process began. */
export function cpuMicroseconds(pid: number): number {
  const stat = readFileSync(`/proc/${String(pid)}/stat`, 'utf8');
  // The second field is the program's name in brackets, which may hold anything; utime and stime are fields 14 and 15.
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  return (Number(fields[11]) + Number(fields[12])) * microsecondsPerTick;
}

export interface Resident {
  readonly megabytes: number;
  /** The most that it ever was. */
  readonly highestMegabytes: number;
}

export function residentOf(pid: number): Resident {
  const status = readFileSync(`/proc/${String(pid)}/status`, 'utf8');
  const megabytes = (field: string) => Number(new RegExp(`^${field}:\\s+(\\d+) kB`, 'm').exec(status)?.[1]) / 1024;
  return { megabytes: megabytes('VmRSS'), highestMegabytes: megabytes('VmHWM') };
}
