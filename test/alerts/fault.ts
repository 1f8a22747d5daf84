// What a fault is: something broken, the alerts that fire for it, and how it is mended.
import type { Scene } from './scene.js';

export interface Expected {
  readonly alert: string;
  /** Labels that the alert has beside `namespace` and `release`. */
  readonly labels?: Readonly<Record<string, string>>;
}

/** `BacktalkGatewayGone`, and `BacktalkComponentGone/judge` where the alert has a label of its own. */
export function nameOf({ alert, labels = {} }: Expected): string {
  return [alert, ...Object.values(labels)].join('/');
}

export type Mend = () => Promise<void> | void;

export interface Fault {
  /** What is done to the installation, in a few words. */
  readonly fault: string;
  readonly fires: readonly Expected[];
  /** Gives what mends it, which resolves when nothing more has to be done. */
  break(scene: Scene): Promise<Mend> | Mend;
}

/** The process is killed and kept away until the mending. */
export function awayFor(name: string, ...fires: readonly Expected[]): Fault {
  return {
    fault: `${name} is killed and stays away`,
    fires,
    break: (scene) => {
      scene.away(name);
      return () => scene.back(name);
    },
  };
}

/** What needs no mending: it has happened once, and is over. */
export const over: Mend = () => undefined;
