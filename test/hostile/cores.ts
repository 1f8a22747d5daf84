// Processor time while something lasts. In: a scene; the attacker is this process. Out: cores in use, on average.
import { cpus } from 'node:os';
import { cpuMicroseconds } from '../bench/process-figures.js';
import type { CoresUsed } from './report.js';
import type { Scene } from './scene.js';

export function startCores({ machine, processes }: Scene): () => CoresUsed {
  const usedBy = (names: Iterable<string>) =>
    [...names].reduce((sum, name) => sum + microsecondsOf(machine.pid(name)), 0);
  const take = () => {
    const { user, system } = process.cpuUsage();
    return {
      attacker: user + system,
      gateway: usedBy(['gateway']),
      parts: usedBy(processes),
      all: busyMs() * 1_000,
      at: performance.now() * 1_000,
    };
  };
  const before = take();
  return () => {
    const after = take();
    const cores = (what: 'attacker' | 'gateway' | 'parts' | 'all') =>
      Math.max(0, after[what] - before[what]) / (after.at - before.at);
    return {
      attacker: cores('attacker'),
      gateway: cores('gateway'),
      parts: cores('parts'),
      all: cores('all'),
      of: cpus().length,
    };
  };
}

/** One that has ended has used nothing since. */
function microsecondsOf(pid: number): number {
  try {
    return cpuMicroseconds(pid);
  } catch {
    return 0;
  }
}

function busyMs(): number {
  return cpus().reduce((sum, { times }) => sum + times.user + times.sys + times.nice + times.irq, 0);
}
