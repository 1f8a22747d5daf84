// What the gateway adds to the time to the first token, beside the same engine asked directly.
import { Agent } from 'node:http';
import type { TestMachine } from '../loop/machine.js';
import type { Benchmark, BenchmarkContext, Measured } from './benchmark.js';
import { bodyForEngine, bodyForGateway } from './chat-bodies.js';
import { benchErrors } from './errors.js';
import { askOnce, runLoad } from './http-load.js';
import { setPace } from './stand-in-engine.js';
import { percentile } from './statistics.js';

export interface FirstTokenSizes {
  readonly runs: number;
  readonly pairs: number;
}

const sizes: FirstTokenSizes = { runs: 5, pairs: 150 };
/** Compilers go on improving hot code for thousands of requests. */
const warmUp = { requests: 1_500, clients: 8 };
const asking = { stream: true, tokens: 4 };

export const firstToken: Benchmark = {
  name: 'first-token',
  about: 'time to the first token that the gateway adds, p50 and p99',
  run: (context) =>
    context.machine({ engine: 'stand-in', training: 'stand-in' }, (machine) => measureFirst(context, machine, sizes)),
};

async function measureFirst(
  context: BenchmarkContext,
  machine: TestMachine,
  { runs, pairs }: FirstTokenSizes,
): Promise<Measured> {
  const agent = new Agent({ keepAlive: true });
  // The rest of an answer comes after the first token was seen, so that it takes no time from it.
  await setPace(machine.engine, { tokenMs: 5, answerTokens: asking.tokens });
  context.say('warming up');
  await runLoad({ ...warmUp, url: machine.gateway, body: bodyForGateway(asking) });
  await runLoad({ ...warmUp, url: machine.engine, body: bodyForEngine(asking) });
  const added = { p50: [] as number[], p99: [] as number[], through: [] as number[], direct: [] as number[] };
  for (let run = 1; run <= runs; run += 1) {
    context.say(`run ${run} of ${runs}`);
    const { through, direct } = await runOf(agent, machine, pairs);
    added.through.push(percentile(through, 0.5));
    added.direct.push(percentile(direct, 0.5));
    added.p50.push(percentile(through, 0.5) - percentile(direct, 0.5));
    added.p99.push(percentile(through, 0.99) - percentile(direct, 0.99));
  }
  agent.destroy();
  return {
    figures: [
      { name: 'added to the first token, p50', unit: 'ms', values: added.p50, aim: { atMost: 1.5 } },
      { name: 'added to the first token, p99', unit: 'ms', values: added.p99, aim: { atMost: 10 } },
      { name: 'first token through the gateway, p50', unit: 'ms', values: added.through },
      { name: 'first token from the engine, p50', unit: 'ms', values: added.direct },
    ],
    notes: [
      `${pairs} pairs a run, one request at a time, turn and turn about; the stand-in engine waits 5 ms before each token`,
      'added = percentile through the gateway less the same percentile of the engine asked directly',
    ],
  };
}

async function runOf(agent: Agent, { gateway, engine }: TestMachine, pairs: number) {
  const through: number[] = [];
  const direct: number[] = [];
  for (let pair = 0; pair < pairs; pair += 1) {
    through.push(await firstMs(agent, gateway, bodyForGateway(asking)));
    direct.push(await firstMs(agent, engine, bodyForEngine(asking)));
  }
  return { through, direct };
}

async function firstMs(agent: Agent, url: string, body: string): Promise<number> {
  const { whole, firstTextMs } = await askOnce(agent, url, body);
  if (!whole) throw benchErrors.requestFailed({ what: url, failed: 1, of: 1 });
  return firstTextMs;
}
