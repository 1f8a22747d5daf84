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
  /** `keyed`: two tenants, stand-ins for models. `laptop`: as `npm start` leaves it, without keys, with the built-in engine. */
  readonly on: 'keyed' | 'laptop';
  run(scene: Scene): Promise<Outcome>;
}
