// What the experiment's rows come to: the share of the ceiling that a wish reached, and what of it was kept. Pure.
import type { Row, UnitResult } from './result.js';

const told = 'base shown the wish';

type Compared = Pick<UnitResult, 'seed' | 'run'>;

/** The rows that a wish is compared with, of its own run, or else of the first result that has them. */
export function comparisonsFor(results: readonly UnitResult[], of: string, { seed, run }: Compared): Row[] {
  const having = results.filter(
    (result) => result.seed === seed && result.rows.some((row) => row.of === of && row.step === 0 && row.name === told),
  );
  const found = having.find((result) => result.run === run) ?? having[0];
  return found?.rows.filter((row) => row.of === of && row.step === 0 && row.block === '') ?? [];
}

/** Headline of the base shown the wish; undefined where it was not measured. */
export function toldOf(results: readonly UnitResult[], of: string, compared: Compared): Row | undefined {
  return comparisonsFor(results, of, compared).find(({ name }) => name === told);
}

export function ceilingOf(results: readonly UnitResult[], of: string, compared: Compared): number | undefined {
  return toldOf(results, of, compared)?.scores.headline;
}

export function baseOf(results: readonly UnitResult[], of: string, compared: Compared): Row | undefined {
  return comparisonsFor(results, of, compared).find(({ name }) => name === 'base');
}

export function versionsOf({ rows }: Pick<UnitResult, 'rows'>, of: string): Row[] {
  return rows.filter((row) => row.of === of && row.block !== '');
}

export interface Kept {
  readonly of: string;
  readonly best: number;
  readonly last: number;
  /** Last ÷ best; undefined where nothing was reached before the last measurement: then there is nothing to keep. */
  readonly share: number | undefined;
}

/** What of each wish is left at the end, from its own block on. */
export function keptOf(result: Pick<UnitResult, 'rows'>, of: string): Kept {
  const headlines = versionsOf(result, of).map(({ scores }) => scores.headline);
  const best = Math.max(0, ...headlines);
  const last = headlines.at(-1) ?? 0;
  const before = Math.max(0, ...headlines.slice(0, -1));
  return { of, best, last, share: before === 0 ? undefined : last / best };
}

/** Of the base shown the wish: below it a wish was not learned, and there is nothing to keep. */
const learnedShare = 0.5;

/** @param ceiling headline of the base shown the wish; where that was not measured, anything that was reached counts */
export function isLearned({ best }: Kept, ceiling: number | undefined): boolean {
  return best > 0 && best >= learnedShare * (ceiling ?? 0);
}

/** A wish alone, as it was measured beside this result; in another run where it was not. */
export function aloneOf(results: readonly UnitResult[], of: string, { seed, run }: Compared): UnitResult | undefined {
  const all = results.filter((one) => one.part === 'a' && one.name === of && one.seed === seed);
  return all.find((one) => one.run === run) ?? all[0];
}

/** Of several runs of a wish alone, the one that went on for longest. */
export function longestAlone(results: readonly UnitResult[]): UnitResult[] {
  const all = results.filter(({ part }) => part === 'a');
  const lengthOf = (one: UnitResult) => versionsOf(one, one.name).at(-1)?.step ?? 0;
  return all.filter((one) => {
    const alike = all.filter(({ name, seed }) => name === one.name && seed === one.seed);
    return one === alike.toSorted((a, b) => lengthOf(b) - lengthOf(a))[0];
  });
}
