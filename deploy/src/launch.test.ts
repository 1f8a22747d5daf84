import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { PassThrough } from 'node:stream';
import { sha256Hex } from '@backtalk/kit';
import { freePort, repositoryRoot, TemporaryDirectory, until } from '@backtalk/kit/testing';
import { afterAll, afterEach, describe, expect, it } from 'vitest';
import { z } from 'zod';
import type { ProcessSpec } from './child.js';
import { openDataFolder } from './data-folder.js';
import { launch, type LaunchOptions } from './launch.js';
import { portsFrom, type Ports } from './ports.js';
import type { Supervisor } from './supervisor.js';
import { createTerminal } from './terminal.js';

const directory = new TemporaryDirectory('launch');
const supervisors: Supervisor[] = [];
afterEach(() => {
  for (const supervisor of supervisors) supervisor.killAll();
});
afterAll(() => {
  directory.remove();
});

async function freePorts(): Promise<Ports> {
  const free = async <T extends object>(ports: T) =>
    Object.fromEntries(await Promise.all(Object.keys(ports).map(async (name) => [name, await freePort()]))) as T;
  const { health, grpc, ...single } = portsFrom(30_000);
  return { ...(await free(single)), health: await free(health), grpc: await free(grpc) };
}

/** Starts, answers to nobody and does nothing. */
const idle = ({ name, env }: ProcessSpec): ProcessSpec => ({
  name,
  env,
  command: 'sleep',
  args: ['600'],
  ready: () => Promise.resolve(true),
  readyWithinMs: 20_000,
  stopSignal: 'SIGTERM',
});

const brokerAlone = (spec: ProcessSpec) => (spec.name === 'nats' ? spec : idle(spec));

async function launched(folder: string, more: Partial<LaunchOptions>) {
  const data = openDataFolder(directory.join(folder));
  const said = { terminal: createTerminal(new PassThrough().resume()), dataCapBytes: 1e9 };
  const start = { root: repositoryRoot(), data, ports: await freePorts(), host: '127.0.0.1', adapt: idle, ...said };
  const made = launch({ ...start, ...more });
  supervisors.push(made.supervisor);
  return { data, ...made };
}

/** Of an installation in which nothing was said. */
function emptyCopy(name = 'copy', keys?: object): string {
  const folder = directory.join(name);
  for (const within of ['blobs', 'files']) mkdirSync(join(folder, within), { recursive: true });
  const files = keys === undefined ? [] : ['keys.json'];
  for (const file of files) writeFileSync(join(folder, 'files', file), JSON.stringify(keys));
  const manifest = { format: 1, takenAt: '2026-11-29', streams: [], blobs: 0, files };
  writeFileSync(join(folder, 'manifest.json'), JSON.stringify(manifest));
  return folder;
}

describe('a start', () => {
  it('the key of the launch variable opens the endpoint beside the keys of the copy that the start goes on from', async () => {
    const restore = emptyCopy('with-keys', { keys: [{ sha256: 'of the copy', tenant: 'acme', user: 'ann' }] });
    const clientKey = 'sk-of-the-clients-0123456789';
    const { data } = await launched('keyed', { restore, clientKey });
    const { keys } = z
      .object({ keys: z.array(z.object({ sha256: z.string() })) })
      .parse(JSON.parse(readFileSync(data.keys, 'utf8')));
    expect(keys.map(({ sha256 }) => sha256)).toEqual(['of the copy', sha256Hex(clientKey)]);
  });

  it('a start that is asked to stop waits for no broker, and writes nothing for commands to find', async () => {
    const stopping = new AbortController();
    const { data, supervisor, up } = await launched('stopped', {});
    const stopped = expect(up(stopping.signal)).rejects.toThrow(/abort|cancel/);
    await until(() => supervisor.pid('valkey'));
    stopping.abort();
    await supervisor.stop();
    await stopped;
    expect(existsSync(data.connection)).toBe(false);
  });

  it('a copy is marked as not whole until its streams are there, and commands find the machine', async () => {
    const { data, supervisor, up } = await launched('restored', { restore: emptyCopy(), adapt: brokerAlone });
    expect(existsSync(data.restoring)).toBe(true);
    await up();
    await supervisor.stop();
    expect([data.restoring, data.connection].map((file) => existsSync(file))).toEqual([false, true]);
    expect(readdirSync(join(data.nats, 'jetstream'), { recursive: true }).join()).toContain('TURNS');
  });

  it('a start that is asked to stop when the copy is there leaves it marked, and no word for commands', async () => {
    const stopping = new AbortController();
    const said = new PassThrough().on('data', (words: Buffer) => {
      if (words.includes('restored')) stopping.abort();
    });
    const more = { restore: emptyCopy(), adapt: brokerAlone, terminal: createTerminal(said) };
    const { data, supervisor, up } = await launched('restoring', more);
    await expect(up(stopping.signal)).rejects.toThrow(/abort|cancel/);
    await supervisor.stop();
    expect([data.restoring, data.connection].map((file) => existsSync(file))).toEqual([true, false]);
  });
});
