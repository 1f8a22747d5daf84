// The control of an attack: as much processor time as the attack took, in processes that do not talk to Backtalk. What the other
// client notices of it is the machine's doing: attacker, installation and both clients share its cores.
import { fork } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { until } from '@backtalk/kit/testing';
import { startCores } from './cores.js';
import { latencyOf, type CoresUsed, type Latency } from './report.js';
import type { Scene } from './scene.js';

/** What an attack leaves behind is worked off when the installation takes no more than this beyond what it takes in calm. */
const restCores = 0.1;
const lookedAtMs = 500;
const worksOffWithinMs = 30_000;

/** @param calm cores that the installation takes while only the other client asks */
export async function controlOf(scene: Scene, used: CoresUsed, calm: CoresUsed): Promise<Latency> {
  await worksOff(scene, calm);
  const program = fileURLToPath(new URL('burn-main.js', import.meta.url));
  const cores = Math.min(used.of, used.attacker + Math.max(0, used.parts - calm.parts));
  const count = Math.ceil(cores);
  const burners = Array.from({ length: count }, () => fork(program, [String(cores / count)]));
  try {
    await scene.noted();
    await scene.measured();
    return latencyOf((await scene.noted()).answeredMs);
  } finally {
    for (const burner of burners) burner.kill('SIGKILL');
  }
}

/** A scene that does not come to rest is measured as it is. */
async function worksOff(scene: Scene, calm: CoresUsed): Promise<void> {
  let cores = startCores(scene);
  const isCalm = () => {
    const { parts } = cores();
    cores = startCores(scene);
    return Promise.resolve(parts <= calm.parts + restCores);
  };
  const what = 'The attack is worked off';
  await until(isCalm, { what, timeoutMs: worksOffWithinMs, everyMs: lookedAtMs }).catch(() => undefined);
}
