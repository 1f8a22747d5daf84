// One fault, or two at once, and what must be true after it.
// In: a machine under load, and what was drawn. Out: how long it took until it answered and learned again, or why it did not.
import { asBacktalkError } from '@backtalk/kit';
import { until } from '@backtalk/kit/testing';
import { WeightsStaged_Stage } from '@backtalk/proto/facts';
import type { Crowd } from '../loop/crowd.js';
import type { LogBook } from '../loop/fact-log.js';
import type { TestMachine } from '../loop/machine.js';
import type { Random } from '../loop/random.js';
import { faults, type Fault } from './faults.js';

export interface Ground {
  readonly machine: TestMachine;
  readonly book: LogBook;
  readonly crowd: Crowd;
}

export interface Drawn {
  readonly name: string;
  readonly faults: readonly Fault[];
  readonly lastsMs: number;
}

export interface Round {
  readonly name: string;
  readonly atMs: number;
  /** From the end of the fault, until clients had eight more answers. */
  readonly answersSeconds: number;
  /** From the end of the fault, until a version was stable that no one had staged before. */
  readonly learnsSeconds: number;
  /** Empty when all is well. */
  readonly problem: string;
}

/** Longer than anybody waits for a connection that stands still. */
const lastsMaxMs = 25_000;
const moreAnswers = 8;
const bothAtOnce = 0.3;
const answersWithinMs = 90_000;
const learnsWithinMs = 180_000;

/** What shows whether memory grows while nothing goes wrong. */
export const calm: Drawn = { name: 'nothing goes wrong for 30 s', faults: [], lastsMs: 30_000 };

export function drawRound(random: Random): Drawn {
  const first = random.pick(faults);
  const second = random.pick(faults);
  const drawn = random.next() < bothAtOnce && second !== first ? [first, second] : [first];
  // Mostly short, sometimes long.
  const lastsMs = Math.floor(lastsMaxMs * random.next() ** 2);
  const name = `${drawn.map((fault) => fault.name).join(' and ')} for ${(lastsMs / 1_000).toFixed(1)} s`;
  return { name, faults: drawn, lastsMs };
}

export async function runRound({ machine, book, crowd }: Ground, drawn: Drawn): Promise<Round> {
  const atMs = Date.now();
  const round = { name: drawn.name, atMs, answersSeconds: 0, learnsSeconds: 0, problem: '' };
  try {
    const ends: (() => Promise<void>)[] = [];
    for (const fault of drawn.faults) ends.push(await fault.begin(machine));
    await new Promise((resolve) => setTimeout(resolve, drawn.lastsMs));
    for (const end of ends) await end();
    const endMs = performance.now();
    const since = () => (performance.now() - endMs) / 1_000;
    const answers = crowd.finished + moreAnswers;
    const answersAgain = () => crowd.finished >= answers;
    await until(answersAgain, { what: 'Eight more answers', timeoutMs: answersWithinMs, everyMs: 50 });
    const answersSeconds = since();
    const before = await stableCount(book);
    // One that was under way may still come; the next is made of what is said now.
    const learnsAgain = async () => (await stableCount(book)) >= before + 2;
    await until(learnsAgain, { what: 'Two more stable versions', timeoutMs: learnsWithinMs, everyMs: 200 });
    return { ...round, answersSeconds, learnsSeconds: since() };
  } catch (thrown) {
    return { ...round, problem: asBacktalkError(thrown).message };
  }
}

async function stableCount({ reader }: LogBook): Promise<number> {
  const versions = new Set<string>();
  for await (const { message } of reader.read(['weightsStaged']))
    if (message.stage === WeightsStaged_Stage.STAGE_STABLE) versions.add(message.version);
  return versions.size;
}
