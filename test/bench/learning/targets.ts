// What the experiment is to show, and whether the kept results show it. In: results. Out: a line for each aim, with how many
// cases met it. An aim that nothing was run for, or nothing to its end, says so. Pure.
import { aloneOf, baseOf, ceilingOf, isLearned, keptOf, longestAlone, versionsOf } from './findings.js';
import type { Row, UnitResult } from './result.js';

export interface Target {
  readonly aim: string;
  /** Each case that was run: its name and what it came to. */
  readonly cases: readonly { readonly name: string; readonly value: string; readonly isMet: boolean }[];
}

/** A wish that the base obeys unasked, or does not obey when it is asked, teaches nothing about learning. */
const qualified = { baseMax: 0.1, toldMin: 0.4 };
const aims = {
  ofCeiling: 0.85,
  ofBest: 0.8,
  controlMax: 0.3,
  poisonedMin: 0.8,
  nllMax: 0.05,
  belowBestMax: 0.1,
  longRun: 50,
  doubt: 0.05,
};

export function targetsOf(all: readonly UnitResult[]): Target[] {
  const results = all.filter(({ stopped }) => !stopped);
  const of = (part: string) => results.filter((result) => result.part === part);
  const turns = of('b');
  return [
    {
      aim: `(a) a qualified wish reaches ${String(aims.ofCeiling)} of the base shown it`,
      cases: longestAlone(results).flatMap((one) => alone(results, one)),
    },
    {
      aim: `(b) each wish keeps ${String(aims.ofBest)} of its own best`,
      cases: turns.flatMap((one) => kept(results, one)),
    },
    {
      aim: `(b) fixed sentences lose at most ${String(aims.nllMax)} nats a token`,
      cases: turns.flatMap((one) => surprise(results, one)),
    },
    {
      aim: `(b) no right sentence is lost to its twin beyond chance (p ≥ ${String(aims.doubt)})`,
      cases: turns.flatMap((one) => skill(results, one)),
    },
    {
      aim: `(e) a control has at most ${String(aims.controlMax)} of the right teacher's gain`,
      cases: of('e').flatMap((one) => control(results, one)),
    },
    {
      aim: `(g) hostile feedback leaves ${String(aims.poisonedMin)} of the gain without it`,
      cases: of('g').flatMap((one) =>
        gained(results, one).map((share) => ({
          name: labelOf(one),
          value: fixed(share),
          isMet: share >= aims.poisonedMin,
        })),
      ),
    },
    {
      aim: `never more than ${aims.belowBestMax.toFixed(2)} below its best in ${String(aims.longRun)} versions`,
      cases: longestAlone(results).flatMap(steady),
    },
  ];
}

const fixed = (value: number) => value.toFixed(2);
const labelOf = ({ name, seed }: UnitResult) => (seed === 1 ? name : `${name}, seed ${String(seed)}`);
const lastOf = (result: UnitResult, of: string): Row | undefined => versionsOf(result, of).at(-1);

function alone(results: readonly UnitResult[], result: UnitResult): Target['cases'] {
  const { name } = result;
  const [base, ceiling, last] = [baseOf(results, name, result), ceilingOf(results, name, result), lastOf(result, name)];
  if (base === undefined || ceiling === undefined || last === undefined) return [];
  if (base.scores.headline > qualified.baseMax || ceiling < qualified.toldMin) return [];
  const share = last.scores.headline / ceiling;
  return [{ name: labelOf(result), value: fixed(share), isMet: share >= aims.ofCeiling }];
}

function kept(results: readonly UnitResult[], result: UnitResult): Target['cases'] {
  return result.name.split('+').map((of) => {
    const found = keptOf(result, of);
    const share = isLearned(found, ceilingOf(results, of, result)) ? found.share : undefined;
    return {
      name: of,
      value: share === undefined ? 'nothing to keep' : fixed(share),
      isMet: (share ?? 0) >= aims.ofBest,
    };
  });
}

/** The last version's row that has the fixed sentences, and the base's. */
function referencesOf(results: readonly UnitResult[], result: UnitResult) {
  const [first = ''] = result.name.split('+');
  const last = result.rows.findLast(({ block, reference }) => block !== '' && reference !== undefined)?.reference;
  return { last, base: baseOf(results, first, result)?.reference };
}

function surprise(results: readonly UnitResult[], result: UnitResult): Target['cases'] {
  const { last, base } = referencesOf(results, result);
  if (last === undefined || base === undefined) return [];
  const change = last.nll - base.nll;
  return [
    {
      name: labelOf(result),
      value: `${change < 0 ? '−' : '+'}${fixed(Math.abs(change))}`,
      isMet: change <= aims.nllMax,
    },
  ];
}

function skill(results: readonly UnitResult[], result: UnitResult): Target['cases'] {
  const { last, base } = referencesOf(results, result);
  if (last?.twins === undefined || base?.twins?.length !== last.twins.length) return [];
  const { twins } = last;
  const lost = base.twins.filter((wasRight, index) => wasRight && twins[index] === false).length;
  const won = base.twins.filter((wasRight, index) => !wasRight && twins[index] === true).length;
  const chance = signTest(lost, won);
  const value = `${String(lost)} lost, ${String(won)} won, p ${fixed(chance)}`;
  return [{ name: labelOf(result), value, isMet: chance >= aims.doubt }];
}

function control(results: readonly UnitResult[], result: UnitResult): Target['cases'] {
  return gained(results, result).map((share) => ({
    name: labelOf(result),
    value: fixed(share),
    isMet: share <= aims.controlMax,
  }));
}

/** A unit's gain over the base, of what its wish gains alone; nothing where that was not run, or gained nothing. */
function gained(results: readonly UnitResult[], result: UnitResult): number[] {
  const [of = ''] = result.name.split(', ');
  const right = aloneOf(results, of, result);
  const base = baseOf(results, of, result);
  const [last, best] = [lastOf(result, of), right === undefined ? undefined : lastOf(right, of)];
  if (last === undefined || best === undefined || base === undefined) return [];
  const gain = best.scores.headline - base.scores.headline;
  return gain <= 0 ? [] : [(last.scores.headline - base.scores.headline) / gain];
}

function steady(result: UnitResult): Target['cases'] {
  const headlines = versionsOf(result, result.name);
  if ((headlines.at(-1)?.step ?? 0) < aims.longRun) return [];
  let best = 0;
  let fall = 0;
  for (const { scores } of headlines) {
    best = Math.max(best, scores.headline);
    fall = Math.max(fall, best - scores.headline);
  }
  return [{ name: labelOf(result), value: fixed(fall), isMet: fall <= aims.belowBestMax }];
}

/** How likely chance alone loses so many of those that changed, or more: one-sided. */
export function signTest(lost: number, won: number): number {
  const changed = lost + won;
  let ways = 1;
  let atLeast = 0;
  for (let one = 0; one <= changed; one += 1) {
    if (one >= lost) atLeast += ways;
    ways = (ways * (changed - one)) / (one + 1);
  }
  return atLeast / 2 ** changed;
}
