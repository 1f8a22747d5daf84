// Builds both images with the Docker engine that is there, and runs them: a command of its own, `npm run test:images`.
// Other bases than the recipes' are named by NODE_IMAGE, PYTHON_IMAGE, NATS_IMAGE, VALKEY_IMAGE and TORCH_INDEX.
import { until } from '@backtalk/kit/testing';
import { afterAll, beforeAll, describe, expect, it, onTestFailed } from 'vitest';
import { startCrowd } from '../loop/crowd.js';
import { ask } from '../loop/talk.js';
import { docker, tryDocker, whyNoDocker } from './docker.js';
import { Trial } from './trial.js';

const minuteMs = 60_000;
const tag = `test-${String(process.pid)}`;
const services = `backtalk/services:${tag}`;
const worker = `backtalk/worker:${tag}`;
const parts = ['gateway', 'collector', 'judge', 'trainer', 'publisher', 'loader'];
/** Modules that a start imports and that no bytecode is there for. */
const listOfUncompiled = `
import os, sys
import grpc, peft, torch, transformers, uvicorn
import backtalk_worker.engine.service, backtalk_worker.training.service
files = [getattr(module, "__cached__", None) for module in list(sys.modules.values())]
print([file for file in files if isinstance(file, str) and not os.path.exists(file)])
`;
const everyPart = ['nats', 'valkey', 'streams', ...parts, 'engine', 'training'];
/** As a cluster runs what it trusts least: any user, nothing to write to but /tmp, no capability. */
const confined = [
  ...['--read-only', '--tmpfs', '/tmp', '--cap-drop', 'ALL', '--security-opt', 'no-new-privileges'],
  ...['--user', '23456:0'],
];

function say(line: string): void {
  process.stdout.write(`${line}\n`);
}

const once = (image: string, ...command: readonly string[]) =>
  tryDocker(['run', '--rm', ...confined, image, ...command], 2 * minuteMs);

const whyNot = whyNoDocker();
if (whyNot !== undefined) say(`Images are not built: ${whyNot}`);

describe.skipIf(whyNot !== undefined)('the images', { timeout: 40 * minuteMs }, () => {
  let trial: Trial;

  beforeAll(async () => {
    trial = await Trial.of(tag);
  });

  afterAll(async () => {
    await trial?.remove();
    await tryDocker(['image', 'rm', services, worker], minuteMs);
  }, 5 * minuteMs);

  it.each([
    ['gateway', services],
    ['engine', worker],
  ])('the image of %s is built', async (part, image) => {
    const seconds = await trial.build(part);
    const bytes = Number(await docker(['image', 'inspect', '--format', '{{.Size}}', image], minuteMs));
    say(`${image}: ${String(Math.round(bytes / 1e6))} MB, built in ${seconds.toFixed(0)} s`);
    expect(bytes).toBeGreaterThan(0);
  });

  it.each([services, worker])('%s runs as any user, without capabilities, and writes nowhere', async (image) => {
    const looked = await once(image, 'sh', '-c', 'id -u; id -g; grep CapEff /proc/self/status; touch /app/written');
    expect(looked.output).toMatch(/^23456\n0\nCapEff:\t0{16}\n/);
    expect(looked).toMatchObject({ status: 1, output: expect.stringContaining('Read-only file system') as string });
  });

  it('every service starts as any user, and asks for its first missing setting', async () => {
    expect(await once(services, 'node_modules/.bin/backtalk', '--help')).toMatchObject({ status: 0 });
    for (const part of parts) {
      const { status, output } = await once(services, 'node', `services/${part}/dist/main.js`);
      expect(status, output).toBe(2);
      expect(output, part).toContain('BACKTALK_HEALTH_ADDRESS is not set');
    }
  });

  it('what only building needs is in no image', async () => {
    const { output } = await once(services, 'ls', 'node_modules');
    const tools = ['typescript', 'vitest', 'eslint', 'turbo', 'pyright'];
    expect(output.split('\n').filter((name) => tools.includes(name))).toEqual([]);
    expect(output).toContain('nats');
  });

  it('a start of the worker compiles nothing', async () => {
    const { status, output } = await once(worker, 'python', '-c', listOfUncompiled);
    expect(status, output).toBe(0);
    expect(output.trim().split('\n').at(-1)).toBe('[]');
  });

  it('the engine answers as any user, and stops by itself when it is asked to', async () => {
    const name = `backtalk-engine-${tag}`;
    await docker(['run', '--detach', '--name', name, '--publish', '127.0.0.1::30030', ...confined, worker], minuteMs);
    try {
      const address = await docker(['port', name, '30030'], minuteMs);
      const models = () => fetch(`http://${address}/v1/models`, { signal: AbortSignal.timeout(5_000) });
      const answer = await until(models, { what: 'The engine', timeoutMs: 3 * minuteMs, everyMs: 250 });
      expect(await answer.text()).toContain('smollm2-135m-wishes');
      await docker(['stop', '--time', '30', name], minuteMs);
      expect(await docker(['inspect', '--format', '{{.State.ExitCode}}', name], minuteMs)).toBe('0');
    } finally {
      await tryDocker(['rm', '--force', name], minuteMs);
    }
  });

  it('the compose system comes up whole, answers, and serves a version that it learned', async () => {
    onTestFailed(async () => say(await trial.logs()));
    const since = performance.now();
    const seconds = () => ((performance.now() - since) / 1_000).toFixed(0);
    await trial.up();
    say(`every part is healthy after ${seconds()} s`);
    const running = await trial.ends();
    expect(Object.keys(running).sort()).toEqual([...everyPart].sort());
    expect(Object.entries(running).filter(([, code]) => code !== undefined)).toEqual([['streams', 0]]);

    const { gateway, key } = trial;
    const messages = [{ role: 'user' as const, content: 'What is a glacier?' }];
    const question = { messages, maxTokens: 16, headers: { authorization: `Bearer ${key}` } };
    expect(await ask(gateway, question)).toMatchObject({ status: 200, finished: true, weights: 'backtalk-v0' });
    const crowd = startCrowd({ gateway, key, seed: 9, clients: 2, corrects: 1, streams: 1, maxTokens: 16 });
    const learned = async () => {
      const heard = await ask(gateway, question);
      return heard.finished && heard.weights !== 'backtalk-v0' && heard;
    };
    const heard = await until(learned, {
      what: 'A version that was learned',
      timeoutMs: 12 * minuteMs,
      everyMs: 1_000,
    });
    const ledger = await crowd.stop();
    say(`${heard.weights} serves after ${seconds()} s and ${String(ledger.length)} answers`);
    expect(heard.weights).toMatch(/^backtalk-v[1-9]\d*$/);
    expect(ledger.filter(({ finished, error }) => !finished || error !== '')).toEqual([]);
  });

  it('every container stops by itself within its grace', async () => {
    onTestFailed(async () => say(await trial.logs()));
    const since = performance.now();
    await trial.stop();
    say(`every container stopped within ${((performance.now() - since) / 1_000).toFixed(1)} s`);
    expect(await trial.ends()).toEqual(Object.fromEntries(everyPart.map((part) => [part, 0] as const)));
  });
});
