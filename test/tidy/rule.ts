// What a rule is: what it guarantees, how it finds breaches, and a house that breaks it.
import type { House } from './house.js';

export interface Rule {
  /** The guarantee, as a test's name. */
  readonly name: string;
  /** One line a breach: where, and what to do. Empty when the house keeps the rule. */
  check(house: House): string[];
  /** The least that breaks the rule: it proves that the rule is not vacuous. */
  readonly broken: Readonly<Record<string, string>>;
}

export const typescript = /\.ts$/;
export const testCode = /\.test\.ts$|\/testing\/|^test\/|(^|\/)tests?\/|\.config\.ts$/;

/** TypeScript that runs in production. */
export function productionPaths(house: House, below = /^/): string[] {
  return house.paths(typescript).filter((path) => below.test(path) && !testCode.test(path));
}
