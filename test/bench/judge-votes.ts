// How many votes a judge casts in a second, from the first turn that waits to the last that is judged.
import { FactReader, folderBlobStore, learningSwitch, type Broker } from '@backtalk/kit';
import { until } from '@backtalk/kit/testing';
import type { TurnJudged } from '@backtalk/proto/facts';
import type { TestMachine } from '../loop/machine.js';
import { randomFrom } from '../loop/random.js';
import type { BenchmarkContext, Measured } from './benchmark.js';
import { benchErrors } from './errors.js';
import { publishTurns } from './turns-to-judge.js';

export interface VoteSizes {
  readonly runs: number;
  readonly turns: number;
}

const warmUpTurns = 4;
const judgedWithinMs = 180_000;

interface Run {
  readonly votesPerSecond: number;
  readonly turnsPerSecond: number;
  readonly judged: readonly TurnJudged[];
}

export async function measureVotes(
  context: BenchmarkContext,
  machine: TestMachine,
  { runs, turns }: VoteSizes,
): Promise<Measured> {
  const broker = await machine.broker();
  try {
    // Judged turns would be trained on, beside the judge.
    await learningSwitch(broker, 'backtalk').put({ paused: true });
    const random = randomFrom(11);
    const judge = (count: number) => judgeSome(machine, broker, () => publishTurns(broker, random, count));
    context.say('warming up');
    await judge(Math.min(turns, warmUpTurns));
    const found: Run[] = [];
    for (let run = 1; run <= runs; run += 1) {
      context.say(`${turns} turns, run ${run} of ${runs}`);
      found.push(await judge(turns));
    }
    return report(found, turns);
  } finally {
    await broker.close();
  }
}

async function judgeSome(machine: TestMachine, broker: Broker, publish: () => Promise<string[]>): Promise<Run> {
  const reader = new FactReader(broker, folderBlobStore(machine.data.blobs));
  const turns = await publish();
  const facts = await until(
    async () => {
      const found = await Promise.all(turns.map((turn) => reader.last('turnJudged', { turn })));
      const there = found.flatMap((fact) => fact ?? []);
      return there.length === turns.length && there;
    },
    { timeoutMs: judgedWithinMs, everyMs: 200, what: 'The judgement of every turn' },
  );
  const waiting = await Promise.all(turns.map((turn) => reader.last('turnContinued', { turn })));
  const from = Math.min(...waiting.map((fact) => fact?.timeMs ?? Number.NaN));
  const seconds = (Math.max(...facts.map(({ timeMs }) => timeMs)) - from) / 1_000;
  const judged = facts.map(({ message }) => message);
  const cast = judged.flatMap((message) => message.votes);
  const votes = cast.filter(({ valid }) => valid).length;
  if (votes === 0) throw benchErrors.noVotes({ reasons: [...new Set(cast.map(({ reason }) => reason))].join(', ') });
  return { votesPerSecond: votes / seconds, turnsPerSecond: turns.length / seconds, judged };
}

function report(runs: readonly Run[], turns: number): Measured {
  const votes = runs.flatMap(({ judged }) => judged.flatMap((message) => message.votes));
  const invalid = votes.filter(({ valid }) => !valid).length;
  return {
    figures: [
      { name: 'valid votes of the judge', unit: '/s', values: runs.map(({ votesPerSecond }) => votesPerSecond) },
      { name: 'turns judged', unit: '/s', values: runs.map(({ turnsPerSecond }) => turnsPerSecond) },
    ],
    notes: [
      `${turns} turns a run with user replies, ${(votes.length / (turns * runs.length)).toFixed(0)} votes each, ${invalid} of ${votes.length} not valid; built-in engine with one thread`,
    ],
  };
}
