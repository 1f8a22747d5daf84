// What an attack is: a scene that it is run on, what it does there, and what came of it.
import type { Scene } from './scene.js';

export interface Outcome {
  /** The attack did not reach what it was after. */
  readonly held: boolean;
  /** What happened, in a few words with its figures. */
  readonly now: string;
}

export interface Attack {
  readonly name: string;
  /** What the attacker does. */
  readonly about: string;
  /** What the same attack reached before there was a bound. */
  readonly before: string;
  /**
   * `keyed`: two tenants. `replicated`: the same with three engines. `keyless`: no key was ever made. All with stand-ins for
   * models. `laptop`: as `npm start` leaves it, without keys, with the built-in engine.
   */
  readonly on: Place;
  /** Why another client's latency says nothing here; it is measured where this is left out. */
  readonly unmeasured?: string | undefined;
  /** Sets up what attack and calm have in common, before either is measured; gives what takes it back. */
  prepare?(scene: Scene): Promise<() => Promise<void>>;
  /** Goes on at least until the other client has been measured: see `Scene.rounds`. */
  run(scene: Scene): Promise<Outcome>;
}

export type Place = 'keyed' | 'replicated' | 'keyless' | 'laptop';
