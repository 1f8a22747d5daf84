// Votes a second with more PRM engines, with more judges, and with more of both, each against fixed other parts. An engine is
// a stand-in with a fixed time for a vote and a fixed number of places, so that what grows is what the judges can use of the
// engines, not what this machine can compute.
import { join } from 'node:path';
import { answersOk, type ProcessSpec } from '@backtalk/deploy';
import { freePort } from '@backtalk/kit/testing';
import { root } from '../loop/machine.js';
import type { Benchmark, BenchmarkContext, Figure, Measured } from './benchmark.js';
import { measureVotes } from './judge-votes.js';
import { startProgram, type Program } from './programs.js';
import { median } from './statistics.js';

const enginesMost = 8;
/** Judges compute: two cores hold four. */
const judgesMost = 4;
const placesOfEngine = 4;
const voteMs = 500;
/** For each engine, and at least for four: a run is long beside its ends, where places stay empty. */
const turnsOfEngine = 24;
const runs = 3;

interface Engine extends Program {
  readonly url: string;
}

/** What grows, and what stays as it is. */
interface Series {
  readonly name: string;
  readonly counts: readonly number[];
  /** Times the votes of one, by count. */
  readonly atLeast: Readonly<Record<number, number>>;
  readonly engines: (count: number) => number;
  readonly judges: (count: number) => number;
  /** Votes that one judge casts at once. */
  readonly concurrency: number;
}

const series: readonly Series[] = [
  {
    name: 'PRM engines, 1 judge with room for all',
    counts: [1, 2, 4, enginesMost],
    atLeast: { 2: 1.9, 4: 3.7, 8: 7.2 },
    engines: (count) => count,
    judges: () => 1,
    concurrency: 2 * placesOfEngine * enginesMost,
  },
  {
    name: `judges with ${String(placesOfEngine)} votes at once, ${String(judgesMost)} PRM engines`,
    counts: [1, 2, judgesMost],
    atLeast: { 2: 1.9, 4: 3.6 },
    engines: () => judgesMost,
    judges: (count) => count,
    concurrency: placesOfEngine,
  },
  {
    name: 'judges and PRM engines, as many of each',
    counts: [1, 2, judgesMost],
    atLeast: { 2: 1.9, 4: 3.6 },
    engines: (count) => count,
    judges: (count) => count,
    concurrency: 2 * placesOfEngine,
  },
];

export const voteScaling: Benchmark = {
  name: 'prm-replicas',
  about: 'votes a second with 1 to 8 PRM engines, 1 to 4 judges, and both',
  run: measureScaling,
};

async function measureScaling(context: BenchmarkContext): Promise<Measured> {
  const engines: Engine[] = [];
  try {
    while (engines.length < enginesMost) engines.push(await startEngine(engines.length + 1));
    const figures: Figure[] = [];
    for (const one of series) {
      const speeds: number[][] = [];
      for (const count of one.counts) {
        context.say(`${String(count)} of: ${one.name}`);
        speeds.push(await votesWith(context, engines, one, count));
      }
      figures.push(...figuresOf(one, speeds));
    }
    return { figures, notes };
  } finally {
    await Promise.all(engines.map((engine) => engine.stop()));
  }
}

async function startEngine(number: number): Promise<Engine> {
  const port = String(await freePort());
  const url = `http://127.0.0.1:${port}`;
  const script = join(root, 'test', 'dist', 'loop', 'stand-ins', 'engine-main.js');
  const pace = ['--first-token-ms', String(voteMs), '--token-ms', '0', '--places', String(placesOfEngine)];
  const program = await startProgram({
    name: `prm-${String(number)}`,
    command: process.execPath,
    args: [script, '--port', port, ...pace],
    ready: () => answersOk(`${url}/health`),
  });
  return { ...program, url };
}

async function votesWith(
  context: BenchmarkContext,
  engines: readonly Engine[],
  { engines: enginesOf, judges, concurrency }: Series,
  count: number,
): Promise<number[]> {
  let first: ProcessSpec | undefined;
  const judge = {
    BACKTALK_JUDGE_URL: engines
      .slice(0, enginesOf(count))
      .map(({ url }) => url)
      .join(','),
    BACKTALK_JUDGE_VOTE_CONCURRENCY: String(concurrency),
    BACKTALK_JUDGE_TURNS_IN_FLIGHT: '64',
  };
  const adapt = (spec: ProcessSpec) => {
    if (spec.name === 'judge') first = spec;
    return spec;
  };
  const { figures } = await context.machine(
    { engine: 'stand-in', training: 'stand-in', environment: { judge }, adapt },
    async (machine) => {
      const more: Program[] = [];
      try {
        while (more.length < judges(count) - 1) more.push(await startJudge(first, more.length + 2));
        const turns = turnsOfEngine * Math.max(4, enginesOf(count));
        return await measureVotes(context, machine, { runs, turns });
      } finally {
        await Promise.all(more.map((program) => program.stop()));
      }
    },
  );
  return [...(figures[0]?.values ?? [])];
}

/** Another judge of the same installation. */
async function startJudge(like: ProcessSpec | undefined, number: number): Promise<Program> {
  if (like === undefined) throw new RangeError('The machine has no judge.');
  const health = `127.0.0.1:${String(await freePort())}`;
  const name = `judge-${String(number)}`;
  return startProgram({
    ...like,
    name,
    env: { ...like.env, BACKTALK_INSTANCE: name, BACKTALK_HEALTH_ADDRESS: health },
    ready: () => answersOk(`http://${health}/readyz`),
  });
}

function figuresOf({ name, counts, atLeast }: Series, speeds: readonly (readonly number[])[]): Figure[] {
  const base = median(speeds[0] ?? []);
  return counts.flatMap((count, at): Figure[] => {
    const values = speeds[at] ?? [];
    const aim = atLeast[count];
    const speed: Figure = { name: `${String(count)} of: ${name}`, unit: '/s', values };
    if (aim === undefined) return [speed];
    const times = values.map((value) => value / base);
    return [speed, { name: `${String(count)} against 1`, unit: '×', values: times, aim: { atLeast: aim } }];
  });
}

const notes = [
  `an engine has ${String(placesOfEngine)} places and takes ${String(voteMs)} ms a vote: at most ${((placesOfEngine / voteMs) * 1_000).toFixed(1)} votes a second`,
  `${String(turnsOfEngine)} turns a run for each engine, and at least for four, from the first that waits to the last that is judged: the ends, where places stay empty, are counted in`,
];
