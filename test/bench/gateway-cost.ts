// What the gateway costs: its own CPU time for each streamed token and for each whole answer, with capture on, beside a bare
// pipe that is given the same load by the same clients from the same engine.
import { fileURLToPath } from 'node:url';
import { answersOk } from '@backtalk/deploy';
import { freePort } from '@backtalk/kit/testing';
import type { TestMachine } from '../loop/machine.js';
import type { Benchmark, BenchmarkContext, Figure, Measured } from './benchmark.js';
import { bodyForEngine, bodyForGateway, type Asking } from './chat-bodies.js';
import { counterAt } from './counters.js';
import { benchErrors } from './errors.js';
import { runLoad } from './http-load.js';
import { cpuMicroseconds } from './process-figures.js';
import { startProgram, type Program } from './programs.js';
import { countsOf, setPace } from './stand-in-engine.js';

export interface CostSizes {
  /** Runs that nobody counts: compilers go on improving hot code for thousands of requests. */
  readonly warmUps: number;
  readonly runs: number;
  readonly streams: { readonly clients: number; readonly tokens: number; readonly tokenMs: number };
  readonly whole: { readonly clients: number; readonly requests: number; readonly tokens: number };
}

const sizes: CostSizes = {
  warmUps: 3,
  runs: 5,
  // Every token comes in a piece of its own, as engines send them: a flood would be read in fewer, larger pieces.
  streams: { clients: 100, tokens: 200, tokenMs: 20 },
  whole: { clients: 16, requests: 2_000, tokens: 12 },
};

/** Microseconds of CPU time for each token or request. */
interface Costs {
  readonly gateway: number[];
  readonly pipe: number[];
}

interface Served {
  readonly name: string;
  readonly url: string;
  readonly pid: number;
  readonly body: (asking: Asking) => string;
}

export const gatewayCost: Benchmark = {
  name: 'gateway',
  about: "CPU time of the gateway a streamed token and a request, beside a bare pipe's",
  run: (context) =>
    context.machine({ engine: 'stand-in', training: 'stand-in' }, (machine) => measureCosts(context, machine, sizes)),
};

async function measureCosts(context: BenchmarkContext, machine: TestMachine, given: CostSizes): Promise<Measured> {
  const pipe = await startPipe(machine.engine);
  try {
    const gateway = { name: 'gateway', url: machine.gateway, pid: machine.pid('gateway'), body: bodyForGateway };
    const both = [gateway, { name: 'pipe', url: pipe.url, pid: pipe.program.pid, body: bodyForEngine }] as const;
    const token = await tokenCosts(context, machine.engine, both, given);
    const request = await requestCosts(context, machine.engine, both, given);
    return { figures: figuresOf(token, request), notes: [...describe(given), await storedWhere(machine)] };
  } finally {
    await pipe.program.stop();
  }
}

async function startPipe(engine: string): Promise<{ url: string; program: Program }> {
  const port = String(await freePort());
  const url = `http://127.0.0.1:${port}`;
  const script = fileURLToPath(new URL('pipe-proxy-main.js', import.meta.url));
  const program = await startProgram({
    name: 'pipe',
    command: process.execPath,
    // The gateway's own.
    args: ['--max-old-space-size=256', '--max-semi-space-size=16', script, '--port', port, '--engine', engine],
    ready: () => answersOk(`${url}/health`),
  });
  return { url, program };
}

async function tokenCosts(
  context: BenchmarkContext,
  engine: string,
  both: readonly [Served, Served],
  given: CostSizes,
): Promise<Costs> {
  const { clients, tokens, tokenMs } = given.streams;
  await setPace(engine, { tokenMs, answerTokens: tokens });
  const cost = async ({ name, url, pid, body }: Served, run: number) => {
    context.say(`${clients} streams through the ${name}, ${runName(run, given.runs)}`);
    const saidBefore = (await countsOf(engine)).tokens;
    const before = cpuMicroseconds(pid);
    await load({ name, url, clients, requests: clients, body: body({ stream: true, tokens }) });
    return (cpuMicroseconds(pid) - before) / ((await countsOf(engine)).tokens - saidBefore);
  };
  return alternate(both, given, cost);
}

async function requestCosts(
  context: BenchmarkContext,
  engine: string,
  both: readonly [Served, Served],
  given: CostSizes,
): Promise<Costs> {
  const { clients, requests, tokens } = given.whole;
  await setPace(engine, { tokenMs: 0, answerTokens: tokens });
  const cost = async ({ name, url, pid, body }: Served, run: number) => {
    context.say(`${requests} whole answers through the ${name}, ${runName(run, given.runs)}`);
    const before = cpuMicroseconds(pid);
    await load({ name, url, clients, requests, body: body({ stream: false, tokens }) });
    return (cpuMicroseconds(pid) - before) / requests;
  };
  return alternate(both, given, cost);
}

async function load({ name, ...rest }: { name: string } & Parameters<typeof runLoad>[0]): Promise<void> {
  const { failed } = await runLoad(rest);
  if (failed > 0) throw benchErrors.requestFailed({ what: `the ${name}`, failed, of: rest.requests });
}

/** Turn and turn about; runs up to 0 are for warming up. */
async function alternate(
  [gateway, pipe]: readonly [Served, Served],
  { runs, warmUps }: CostSizes,
  cost: (served: Served, run: number) => Promise<number>,
): Promise<Costs> {
  const costs: Costs = { gateway: [], pipe: [] };
  for (let run = 1 - warmUps; run <= runs; run += 1) {
    const found = { gateway: await cost(gateway, run), pipe: await cost(pipe, run) };
    if (run < 1) continue;
    costs.gateway.push(found.gateway);
    costs.pipe.push(found.pipe);
  }
  return costs;
}

function runName(run: number, runs: number): string {
  return run < 1 ? 'warming up' : `run ${run} of ${runs}`;
}

function figuresOf(token: Costs, request: Costs): Figure[] {
  const perCore = request.gateway.map((microseconds) => 1e6 / microseconds);
  return [
    { name: 'CPU a streamed token, gateway with capture', unit: 'µs', values: token.gateway, aim: { atMost: 45 } },
    { name: 'CPU a streamed token, bare pipe', unit: 'µs', values: token.pipe },
    { name: 'CPU a request, gateway with capture', unit: 'µs', values: request.gateway },
    { name: 'CPU a request, bare pipe', unit: 'µs', values: request.pipe },
    { name: 'requests a second and core, gateway with capture', unit: '/s', values: perCore, aim: { atLeast: 3_500 } },
  ];
}

function describe({ streams, whole }: CostSizes): string[] {
  return [
    `streams: ${streams.clients} at once, ${streams.tokens} tokens each, one every ${streams.tokenMs} ms from a stand-in engine; their requests are counted in`,
    `requests: answers of ${whole.tokens} tokens, ${whole.clients} clients at once; 1e6 ÷ CPU µs a request = requests a second and core`,
    'CPU is user and system time of the one process; capture is durable: nats-server with sync_interval: always, one fact as the request arrives and one before the final frame',
    'the pipe is asked for the frames that the gateway takes from the engine (token ids, logprobs), and passes them on whole',
  ];
}

async function storedWhere({ ports }: TestMachine): Promise<string> {
  const health = `http://127.0.0.1:${String(ports.health.gateway)}`;
  const count = (where: string) => counterAt(health, `backtalk_gateway_turns_stored_total{where="${where}"}`);
  return `turns stored: ${await count('broker')} by the broker, ${await count('spool')} by the spool`;
}
