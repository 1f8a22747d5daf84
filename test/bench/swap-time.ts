// How long a swap takes while people talk: from Prepare, and from Commit, to the last gateway; and how long a rollback takes.
// The publisher measures; the weights come from real corrections and a stand-in training worker.
import { grpcClient } from '@backtalk/kit/grpc';
import { until } from '@backtalk/kit/testing';
import { PublisherControlServiceDefinition } from '@backtalk/proto/control';
import { z } from 'zod';
import { startCrowd } from '../loop/crowd.js';
import type { TestMachine } from '../loop/machine.js';
import type { Benchmark, BenchmarkContext, Measured } from './benchmark.js';

export interface SwapSizes {
  readonly swaps: number;
  readonly rollbacks: number;
}

const sizes: SwapSizes = { swaps: 8, rollbacks: 5 };
const clients = 8;
const versionWithinMs = 60_000;
const rollbackWithinMs = 30_000;

const swapped = z.object({
  event: z.literal('version_stable'),
  version: z.string(),
  prepareSeconds: z.number(),
  commitMilliseconds: z.number(),
  gateways: z.number(),
  swapSeconds: z.number(),
});
type Swapped = z.infer<typeof swapped>;

export const swapTime: Benchmark = {
  name: 'swap',
  about: 'from Prepare, and from Commit, to the last gateway; rollback',
  run: (context) =>
    context.machine(
      {
        engine: 'stand-in',
        training: 'stand-in',
        pace: { tokenMs: 10, answerTokens: 24 },
        environment: { trainer: { BACKTALK_RECIPE_SET: 'effective=16,effectiveMin=16' } },
      },
      (machine) => measureSwaps(context, machine, sizes),
    ),
};

async function measureSwaps(
  context: BenchmarkContext,
  machine: TestMachine,
  { swaps, rollbacks }: SwapSizes,
): Promise<Measured> {
  await machine.addGateway();
  const crowd = startCrowd({ gateway: machine.gateway, seed: 1, clients, corrects: 0.9 });
  try {
    await swapsDone(context, machine, swaps);
    const rolled = await rollBack(context, machine, rollbacks);
    const ledger = await crowd.stop();
    const failed = ledger.filter(({ finished }) => !finished).length;
    return report(
      swapsOf(machine),
      rolled,
      `${failed} of ${ledger.length} answers did not come to their end meanwhile`,
    );
  } finally {
    await crowd.stop();
  }
}

function swapsOf(machine: TestMachine): Swapped[] {
  return machine
    .log('publisher')
    .split('\n')
    .filter((line) => line.includes('"version_stable"'))
    .flatMap((line) => swapped.safeParse(JSON.parse(line)).data ?? []);
}

async function swapsDone(context: BenchmarkContext, machine: TestMachine, wanted: number): Promise<void> {
  for (let done = swapsOf(machine).length; done < wanted; done += 1) {
    context.say(`waiting for version ${done + 1} of ${wanted}`);
    await until(() => swapsOf(machine).length > done, {
      what: `Version ${done + 1} serves`,
      timeoutMs: versionWithinMs,
      everyMs: 50,
    });
  }
}

/** Milliseconds of each, with a new version between two. */
async function rollBack(context: BenchmarkContext, machine: TestMachine, times: number): Promise<number[]> {
  const publisher = grpcClient(PublisherControlServiceDefinition, `127.0.0.1:${String(machine.ports.grpc.publisher)}`, {
    caller: 'cli',
    wire: machine.wire,
  });
  const took: number[] = [];
  try {
    for (let time = 1; time <= times; time += 1) {
      context.say(`rollback ${time} of ${times}`);
      // A version that becomes stable at the same moment refuses the wish: it is made again.
      const { seconds } = await until(
        () => publisher.rollback({ policy: 'backtalk', why: 'measured' }, { deadlineMs: rollbackWithinMs }),
        { what: 'A rollback', timeoutMs: rollbackWithinMs },
      );
      took.push(seconds * 1_000);
      if (time < times) await swapsDone(context, machine, swapsOf(machine).length + 1);
    }
  } finally {
    publisher.close();
  }
  return took;
}

function report(swaps: readonly Swapped[], rolled: readonly number[], wentWell: string): Measured {
  const each = (valueOf: (one: Swapped) => number) => swaps.map(valueOf);
  const gateways = Math.min(...each((one) => one.gateways));
  return {
    figures: [
      {
        name: 'from Commit to the last gateway',
        unit: 'ms',
        aim: { atMost: 100 },
        values: each(({ commitMilliseconds }) => commitMilliseconds),
      },
      { name: 'from Prepare to the last gateway', unit: 'ms', values: each(({ swapSeconds }) => swapSeconds * 1_000) },
      { name: 'of that, Prepare', unit: 'ms', values: each(({ prepareSeconds }) => prepareSeconds * 1_000) },
      { name: 'rollback to the last gateway', unit: 'ms', values: rolled, aim: { atMost: 100 } },
    ],
    notes: [
      `${gateways} gateways, ${clients} clients that go on talking, stand-in engine and training worker; ${wentWell}`,
      'from Prepare: loading, the gate on probe prompts, staging, routes, Commit',
    ],
  };
}
