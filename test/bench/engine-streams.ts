// How fast the built-in engine generates: one stream, and eight together, with one thread.
import { Agent } from 'node:http';
import { join } from 'node:path';
import { answersOk, baseModel } from '@backtalk/deploy';
import { freePort } from '@backtalk/kit/testing';
import { root } from '../loop/machine.js';
import type { Benchmark, BenchmarkContext, Measured } from './benchmark.js';
import { benchErrors } from './errors.js';
import { askOnce } from './http-load.js';
import { startProgram } from './programs.js';

export interface StreamSizes {
  readonly runs: number;
  readonly tokens: number;
}

const sizes: StreamSizes = { runs: 5, tokens: 64 };
const together = 8;

export const engineStreams: Benchmark = {
  name: 'engine',
  about: 'tokens a second of the built-in engine, one stream and eight',
  run: (context) => measureStreams(context, sizes),
};

async function measureStreams(context: BenchmarkContext, { runs, tokens }: StreamSizes): Promise<Measured> {
  context.say('loading the model');
  const port = String(await freePort());
  const url = `http://127.0.0.1:${port}`;
  const engine = await startProgram({
    name: 'engine',
    command: join(root, '.venv', 'bin', 'python'),
    args: ['-m', 'backtalk_worker.engine', '--host', '127.0.0.1', '--port', port, '--threads', '1'],
    ready: () => answersOk(`${url}/health`),
  });
  try {
    await tokensPerSecond(url, 1, 8);
    const one: number[] = [];
    const eight: number[] = [];
    for (let run = 1; run <= runs; run += 1) {
      context.say(`run ${run} of ${runs}`);
      one.push(await tokensPerSecond(url, 1, tokens));
      eight.push(await tokensPerSecond(url, together, tokens));
    }
    return report(one, eight, tokens);
  } finally {
    await engine.stop();
  }
}

/** Of all streams together, prompts included. */
async function tokensPerSecond(url: string, streams: number, tokens: number): Promise<number> {
  const agent = new Agent({ keepAlive: true });
  const startedAt = performance.now();
  const seen = await Promise.all(Array.from({ length: streams }, (_, at) => askOnce(agent, url, bodyOf(at, tokens))));
  const seconds = (performance.now() - startedAt) / 1_000;
  agent.destroy();
  const failed = seen.filter(({ whole }) => !whole).length;
  if (failed > 0) throw benchErrors.requestFailed({ what: 'the engine', failed, of: streams });
  return (streams * tokens) / seconds;
}

const places = ['the Alps', 'a desert', 'Lisbon', 'the sea', 'a forest', 'Kyoto', 'a village', 'an island'] as const;

function bodyOf(at: number, tokens: number): string {
  const content = `What should I pack for a week in ${places[at % places.length] ?? places[0]}, and what can stay at home?`;
  return JSON.stringify({
    model: baseModel,
    messages: [{ role: 'user', content }],
    stream: true,
    max_tokens: tokens,
    ignore_eos: true,
    temperature: 0.8,
    seed: at,
    logprobs: true,
    return_token_ids: true,
  });
}

function report(one: readonly number[], eight: readonly number[], tokens: number): Measured {
  const ratio = eight.map((rate, at) => rate / (one[at] ?? Number.NaN));
  return {
    figures: [
      { name: 'built-in engine, one stream', unit: 'tokens/s', values: one },
      { name: `built-in engine, ${together} streams together`, unit: 'tokens/s', values: eight },
      { name: `${together} streams against one`, unit: '×', values: ratio, aim: { atLeast: 2.5 } },
    ],
    notes: [
      `${tokens} tokens an answer with ids and logprobs, float32, one thread; prompts are counted in the time only`,
    ],
  };
}
