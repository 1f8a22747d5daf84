// A service as a process of its own. In: how to load the service's modules. Out: the process, until it ends. Signals are
// heard before anything is loaded: the first process of a container has no default handling of SIGTERM.
import type { Settings, Shape } from '../config/read-config.js';
import type { RunOptions } from './run.js';

export async function runProcess<S extends Shape | Settings>(load: () => Promise<RunOptions<S>>): Promise<void> {
  // Nothing has been begun.
  const leave = (): void => process.exit(0);
  process.on('SIGTERM', leave);
  process.on('SIGINT', leave);
  const [{ run }, options] = await Promise.all([import('./run.js'), load()]);
  const running = run(options);
  // It has its own by now.
  process.off('SIGTERM', leave);
  process.off('SIGINT', leave);
  await running;
}
