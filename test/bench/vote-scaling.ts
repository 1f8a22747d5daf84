// Votes a second with one, two and four PRM replicas. Each replica is a stand-in engine with a fixed time for a vote and a
// fixed number of places, so that what grows with replicas is what the judge can use of them, not what this machine can compute.
import { join } from 'node:path';
import { answersOk } from '@backtalk/deploy';
import { freePort } from '@backtalk/kit/testing';
import { root } from '../loop/machine.js';
import type { Benchmark, BenchmarkContext, Figure, Measured } from './benchmark.js';
import { measureVotes } from './judge-votes.js';
import { startProgram, type Program } from './programs.js';
import { median } from './statistics.js';

const replicaCounts = [1, 2, 4] as const;
const placesOfReplica = 4;
const voteMs = 500;
const turns = 80;
const runs = 3;
const atLeast: Readonly<Record<number, number>> = { 2: 1.9, 4: 3.6 };

interface Replica extends Program {
  readonly url: string;
}

export const voteScaling: Benchmark = {
  name: 'prm-replicas',
  about: 'votes a second with 1, 2 and 4 PRM replicas of fixed speed',
  run: measureScaling,
};

async function measureScaling(context: BenchmarkContext): Promise<Measured> {
  const replicas: Replica[] = [];
  try {
    while (replicas.length < Math.max(...replicaCounts)) replicas.push(await startReplica(replicas.length + 1));
    const speeds: number[][] = [];
    for (const count of replicaCounts) {
      context.say(`${String(count)} PRM replicas`);
      speeds.push(await votesWith(context, replicas.slice(0, count)));
    }
    return report(speeds);
  } finally {
    await Promise.all(replicas.map((replica) => replica.stop()));
  }
}

async function startReplica(number: number): Promise<Replica> {
  const port = String(await freePort());
  const url = `http://127.0.0.1:${port}`;
  const script = join(root, 'test', 'dist', 'loop', 'stand-ins', 'engine-main.js');
  const pace = ['--first-token-ms', String(voteMs), '--token-ms', '0', '--places', String(placesOfReplica)];
  const program = await startProgram({
    name: `prm-${String(number)}`,
    command: process.execPath,
    args: [script, '--port', port, ...pace],
    ready: () => answersOk(`${url}/health`),
  });
  return { ...program, url };
}

async function votesWith(context: BenchmarkContext, replicas: readonly Replica[]): Promise<number[]> {
  const judge = {
    BACKTALK_JUDGE_URL: replicas.map(({ url }) => url).join(','),
    // Enough in hand for every place of every replica, and as many again that wait in the replica's own queue.
    BACKTALK_JUDGE_VOTE_CONCURRENCY: String(2 * placesOfReplica * replicas.length),
    BACKTALK_JUDGE_TURNS_IN_FLIGHT: '64',
  };
  const { figures } = await context.machine(
    { engine: 'stand-in', training: 'stand-in', environment: { judge } },
    (machine) => measureVotes(context, machine, { runs, turns }),
  );
  const [votes] = figures;
  return [...(votes?.values ?? [])];
}

function report(speeds: readonly (readonly number[])[]): Measured {
  const base = median(speeds[0] ?? []);
  const figures = replicaCounts.flatMap((count, at): Figure[] => {
    const values = speeds[at] ?? [];
    const aim = atLeast[count];
    return [
      { name: `votes of ${String(count)} PRM replica${count === 1 ? '' : 's'}`, unit: '/s', values },
      ...(aim === undefined
        ? []
        : [
            {
              name: `${String(count)} against 1`,
              unit: '×',
              values: values.map((v) => v / base),
              aim: { atLeast: aim },
            },
          ]),
    ];
  });
  const most = (placesOfReplica / voteMs) * 1_000;
  return {
    figures,
    notes: [
      `a replica has ${String(placesOfReplica)} places and takes ${String(voteMs)} ms a vote: at most ${most.toFixed(1)} votes a second`,
      `${String(turns)} turns a run, from the first that waits to the last that is judged: the ends, where places stay empty, are counted in`,
    ],
  };
}
