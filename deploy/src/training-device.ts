// Where training steps compute: on this machine's processors, or on a CUDA card. In: what --device says, or what the last start
// was told. Out: the device with what is free on it, and the reason; or one line that says why CUDA cannot be used, and how to get it.
// Python is asked only where a card may be: torch takes seconds to load.
import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { inheritedEnvironment } from '@backtalk/kit';
import { z } from 'zod';
import { deployErrors } from './errors.js';

export const devices = ['cpu', 'cuda', 'auto'] as const;
export type DeviceFlag = (typeof devices)[number];
export function deviceFlag(value: string): DeviceFlag {
  const device = devices.find((known) => known === value);
  if (device === undefined) throw deployErrors.badOption({ option: 'device', value, wanted: 'cpu, cuda or auto' });
  return device;
}

export interface TrainingDevice {
  readonly device: 'cpu' | 'cuda';
  /** Its name, where torch was asked for it. */
  readonly card?: string;
  /** Free on the card. */
  readonly freeBytes: number;
  /** What this start or one before it was told. */
  readonly said: DeviceFlag | undefined;
  readonly reason: string;
}

const card = z.object({ name: z.string(), freeBytes: z.number() });
const noCard = z.object({ why: z.string() });
export type TorchSays = z.infer<typeof card> | z.infer<typeof noCard>;

/** What to do, by what torch's own words do not tell. */
const wayTo: Readonly<Record<string, string>> = {
  'torch is its CPU build': ' (BACKTALK_TORCH=cuda npm start -- --device cuda takes the CUDA build, several GB)',
};

/** @param ask asks torch for its card */
export async function trainingDevice(
  flag: DeviceFlag | undefined,
  kept: DeviceFlag | undefined,
  ask: () => Promise<TorchSays>,
  mayHaveCard: () => boolean = seesDriver,
): Promise<TrainingDevice> {
  const said = flag ?? kept;
  const onCpu = { device: 'cpu', freeBytes: 0, said } as const;
  if (said === undefined) return { ...onCpu, reason: 'the CPU (--device auto takes a card where torch sees one)' };
  if (said === 'cpu') return { ...onCpu, reason: 'the CPU (--device cpu)' };
  if (said === 'auto' && !mayHaveCard()) return { ...onCpu, reason: 'the CPU (no NVIDIA card here)' };
  const found = await ask();
  if ('why' in found) {
    if (said === 'cuda') throw deployErrors.noCuda({ why: `${found.why}${wayTo[found.why] ?? ''}` });
    return { ...onCpu, reason: `the CPU (${found.why})` };
  }
  const free = `${(found.freeBytes / 1e9).toFixed(1)} GB free`;
  const why = said === 'auto' ? 'torch sees it; --device cpu takes the CPU' : '--device cuda';
  return {
    device: 'cuda',
    card: found.name,
    freeBytes: found.freeBytes,
    said,
    reason: `${found.name}, ${free} (${why})`,
  };
}

/** What is set for the training worker outright is said as well. */
export const deviceIn = (environment: Readonly<Record<string, string>>): DeviceFlag | undefined =>
  devices.find((device) => device === environment['BACKTALK_DEVICE']);

/** NVIDIA's driver, and that of Windows below WSL. */
const seesDriver = () => ['/dev/nvidiactl', '/dev/dxg'].some((path) => existsSync(path));

const run = promisify(execFile);
/** It loads torch, and on a busy machine that takes its time. */
const answersWithinMs = 120_000;

export async function askTorch(
  root: string,
  environment: Readonly<Record<string, string>> = inheritedEnvironment(),
): Promise<TorchSays> {
  const args = ['-W', 'ignore', '-m', 'backtalk_worker.model.device'];
  const options = { timeout: answersWithinMs, env: environment };
  try {
    const { stdout } = await run(join(root, '.venv', 'bin', 'python'), args, options);
    return z.union([card, noCard]).parse(JSON.parse(stdout));
  } catch (error) {
    const said = z.object({ stderr: z.string() }).safeParse(error).data?.stderr.trim().split('\n').at(-1) ?? '';
    return { why: `torch could not be asked${said === '' ? '' : ` (${said})`}` };
  }
}
