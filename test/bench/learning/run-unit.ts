// Runs one unit, and keeps what it found. In: a unit, where results are kept, where progress is said. Out: whether it came to its end.
// A unit that fails leaves no result, and the others go on.
import { loadavg } from 'node:os';
import type { TrainingDevice } from '@backtalk/deploy';
import { asBacktalkError, givenUpBy } from '@backtalk/kit';
import { benchErrors } from '../errors.js';
import type { Output } from '../output.js';
import { ranOn, type ResultStore, type UnitKey, type UnitResult } from './result.js';
import type { Found, Unit } from './unit.js';

const load = () => loadavg()[0] ?? Number.NaN;

export const titleOf = ({ part, name, seed }: UnitKey) => `(${part}) ${name}, seed ${String(seed)}`;

/** @param device where steps compute, if not on the CPU */
export async function runUnit(
  unit: Unit,
  store: ResultStore,
  output: Pick<Output, 'progress' | 'settle'>,
  device?: TrainingDevice,
): Promise<boolean> {
  const { part, name, seed, madeFrom } = unit;
  const [startedAt, before] = [performance.now(), load()];
  const say = (progress: string) => {
    output.progress(`${titleOf(unit)}: ${progress}`);
  };
  try {
    const found = await unit.run(say);
    checkTrained(found);
    const minutes = (performance.now() - startedAt) / 60_000;
    const after = load();
    const result: UnitResult = {
      part,
      name,
      seed,
      madeFrom,
      ...found,
      minutes,
      load: [before, after],
      stopped: false,
      ...ranOn(device),
    };
    store.keep(result);
    output.settle(`✓ ${titleOf(unit)}: ${summaryOf(result)}`);
    return true;
  } catch (error) {
    // What it had measured until then would stand as that of a run that was stopped.
    store.drop(unit);
    const { code, message } = asBacktalkError(error);
    output.settle(`✗ ${titleOf(unit)}: ${code === 'internal' && error instanceof Error ? error.message : message}`);
    return false;
  }
}

/** Where steps were given up and none made a version, what was measured is the base: a fault of the set-up, and no result. */
function checkTrained({ steps }: Found): void {
  const [failed] = steps.filter(({ stage }) => givenUpBy.has(stage));
  if (failed === undefined || steps.some(({ stage }) => stage !== 'begun' && !givenUpBy.has(stage))) return;
  const { stage, why } = failed;
  throw benchErrors.nothingTrained({ steps: steps.length, why: `${stage} ${why}` });
}

function summaryOf({ rows, minutes }: UnitResult): string {
  const headlines = rows.map(({ of, name, scores }) => `${of} ${name} ${scores.headline.toFixed(2)}`);
  return `${headlines.join(' · ')} (${minutes.toFixed(0)} min)`;
}
