// What a fault is: an alert, what is broken for it, and how it is mended.
import type { Scene } from './scene.js';

export interface Fault {
  readonly alert: string;
  /** What is done to the installation, in a few words. */
  readonly fault: string;
  /** Labels that the alert has beside `namespace` and `release`. */
  readonly labels?: Readonly<Record<string, string>>;
  /** Gives what mends it, which resolves when nothing more has to be done. */
  break(scene: Scene): Promise<() => Promise<void>> | (() => Promise<void>);
}

/** An alert whose fault no single machine can have, or that is not made here; with the reason. */
export interface Unmade {
  readonly alert: string;
  readonly reason: string;
}

/** The process is killed and kept away until the mending. */
export function awayFor(alert: string, name: string, labels?: Fault['labels']): Fault {
  return {
    alert,
    fault: `${name} is killed and stays away`,
    ...(labels !== undefined && { labels }),
    break: (scene) => {
      scene.away(name);
      return () => scene.back(name);
    },
  };
}
