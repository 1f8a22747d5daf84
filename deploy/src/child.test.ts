import { writeFileSync } from 'node:fs';
import { freePort, TemporaryDirectory, until } from '@backtalk/kit/testing';
import { afterEach, describe, expect, it } from 'vitest';
import { Child, type ProcessSpec } from './child.js';
import { answersOk } from './readiness.js';

const folder = new TemporaryDirectory('child');
const told: string[] = [];
let child: Child | undefined;

function make(spec: Partial<ProcessSpec>): Child {
  const whole: ProcessSpec = {
    name: 'part',
    command: 'sleep',
    args: ['60'],
    env: { PATH: '/usr/bin:/bin' },
    stopSignal: 'SIGTERM' as const,
    ready: () => Promise.resolve(true),
    readyWithinMs: 2_000,
    ...spec,
  };
  child = new Child(whole, folder.join('part.log'), {
    started: () => undefined,
    died: (name, how) => told.push(`${name} ${how}`),
    back: (name) => told.push(`${name} is back`),
    ill: (name) => told.push(`${name} is ill`),
    slow: (name, lastWords) => told.push(`${name} is slow: ${lastWords}`),
  });
  return child;
}

describe('a process of the machine', () => {
  afterEach(async () => {
    await child?.stop(1_000);
    told.length = 0;
  });

  it('a process is started again when it is killed, and that is reported', async () => {
    const part = make({});
    await part.start();
    const before = part.pid ?? 0;
    process.kill(before, 'SIGKILL');
    await until(() => part.pid !== undefined && part.pid !== before, { what: 'another process' });
    await until(() => told.includes('part is back'), { what: 'the word that it is back' });
    expect(told[0]).toBe('part was killed by SIGKILL');
  });

  it('a process that is slow to serve is told of once, with its last words', async () => {
    const ready = () => Promise.resolve(told.length > 0);
    writeFileSync(folder.join('part.log'), 'begun\nreads weights\n');
    await make({ ready, slowAfterMs: 10 }).start();
    expect(told).toEqual(['part is slow: reads weights']);
  });

  it('a process that lives on without serving is started again, but never before it served', async () => {
    let isServing = true;
    let looks = 0;
    const isWell = () => {
      looks += 1;
      return Promise.resolve(isServing);
    };
    const part = make({ ready: isWell, watch: { isWell, everyMs: 5, illMaxMs: 20 } });
    await part.start();
    const before = part.pid;
    isServing = false;
    await until(() => part.pid !== undefined && part.pid !== before, { what: 'another process' });
    expect(told).toEqual(['part is ill', 'part was killed by SIGTERM']);
    const looksThen = looks;
    await until(() => looks > looksThen + 10, { what: 'ten more looks at one that has not served yet' });
    expect(told).toHaveLength(2);
  });

  it('a process that serves and hangs before the first look at it is started again', async () => {
    const part = make({ watch: { isWell: () => Promise.resolve(false), everyMs: 5, illMaxMs: 20 } });
    await part.start();
    await until(() => told.includes('part was killed by SIGTERM'), { what: 'its end' });
    expect(told[0]).toBe('part is ill');
  });

  it('a process that hangs is started again, and serves', async () => {
    const port = String(await freePort());
    const serve = `require('node:http').createServer((_, answer) => answer.end()).listen(${port}, '127.0.0.1')`;
    const isWell = () => answersOk(`http://127.0.0.1:${port}/`, 200);
    const part = make({
      command: process.execPath,
      args: ['-e', serve],
      ready: isWell,
      readyWithinMs: 20_000,
      watch: { isWell, everyMs: 50, illMaxMs: 500, endsWithinMs: 200 },
    });
    await part.start();
    const before = part.pid ?? 0;
    process.kill(before, 'SIGSTOP');
    await until(() => told.includes('part is back'), { what: 'the word that it is back', timeoutMs: 30_000 });
    expect(told).toEqual(['part is ill', 'part was killed by SIGKILL', 'part is back']);
    expect(await isWell()).toBe(true);
  });

  it('refuses a process that never serves, and names its log', async () => {
    const part = make({ command: 'false', args: [], ready: () => Promise.resolve(false) });
    await expect(part.start()).rejects.toThrow('part.log');
  });

  it('a process that ends each time is refused with its last words', async () => {
    const args = ['-c', 'echo starting >&2; echo "rehearsalSteps: Too big." >&2; exit 78'];
    const part = make({ command: 'sh', args, ready: () => Promise.resolve(false), readyWithinMs: 20_000 });
    await expect(part.start()).rejects.toThrow(/^part ends as often as it is started: rehearsalSteps: Too big\. \(/);
  });

  it('refuses a process that cannot be started', async () => {
    const part = make({ command: 'no-such-program', args: [], ready: () => Promise.resolve(false) });
    await expect(part.start()).rejects.toThrow(/ENOENT/);
  });

  it('kills a process that does not heed its signal, in time', async () => {
    const part = make({ command: 'bash', args: ['-c', 'trap "" TERM; while :; do sleep 1; done'] });
    await part.start();
    await part.stop(200);
    expect(part.pid).toBeUndefined();
    expect(told).toEqual([]);
  });
});
