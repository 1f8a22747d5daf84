// Programs beside a machine: started as the machine starts its own, and never left behind. In: a command. Out: its process
// id, and a way to stop it.
import { join } from 'node:path';
import { tmpdir } from 'node:os';
import { mkdtempSync, rmSync } from 'node:fs';
import { Child, type ProcessSpec } from '@backtalk/deploy';
import { inheritedEnvironment } from '@backtalk/kit';

export interface Program {
  readonly pid: number;
  stop(): Promise<void>;
}

const stopWithinMs = 5_000;

export async function startProgram(
  spec: Pick<ProcessSpec, 'name' | 'command' | 'args' | 'ready'> & Partial<ProcessSpec>,
): Promise<Program> {
  const folder = mkdtempSync(join(tmpdir(), 'backtalk-bench-'));
  const quiet = {
    started: () => undefined,
    died: () => undefined,
    back: () => undefined,
    ill: () => undefined,
    slow: () => undefined,
  };
  const whole = { env: inheritedEnvironment(), readyWithinMs: 90_000, stopSignal: 'SIGTERM' as const, ...spec };
  const child = new Child(whole, join(folder, `${spec.name}.log`), quiet);
  const killNow = () => {
    child.killNow();
    rmSync(folder, { recursive: true, force: true });
  };
  process.once('exit', killNow);
  const stop = async () => {
    await child.stop(stopWithinMs);
    process.off('exit', killNow);
    rmSync(folder, { recursive: true, force: true });
  };
  try {
    await child.start();
  } catch (error) {
    await stop();
    throw error;
  }
  return { pid: child.pid ?? 0, stop };
}
