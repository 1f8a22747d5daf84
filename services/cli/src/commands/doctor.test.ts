import { chmodSync, mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import { baseFilesIn, type BaseFiles } from '@backtalk/kit';
import { freePort, startNats, TemporaryDirectory, type TestNats } from '@backtalk/kit/testing';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { printCommand, runCommand, type Place } from '../testing/cluster-command.js';

const directory = new TemporaryDirectory('doctor');
const data = directory.join('data');
let nats: TestNats;
let place: Place;
let servers: Server[] = [];

beforeAll(async () => {
  nats = await startNats();
  place = { nats, user: 'cli', folder: directory.path, environment: { BACKTALK_NATS_URL: '' } };
  mkdirSync(data);
});

afterAll(async () => {
  await nats.stop();
  directory.remove();
});

afterEach(() => {
  for (const server of servers) server.close();
  servers = [];
  rmSync(data, { recursive: true, force: true });
  mkdirSync(data);
});

/** Answers by path; what is not named is not found. */
async function serve(answers: Readonly<Record<string, string>>, aheadMs = 0): Promise<string> {
  const port = await freePort();
  const server = createServer((request, response) => {
    const text = answers[request.url ?? ''];
    response
      .writeHead(text === undefined ? 404 : 200, { date: new Date(Date.now() + aheadMs).toUTCString() })
      .end(text);
  });
  await new Promise<void>((resolve) => server.listen(port, '127.0.0.1', resolve));
  servers.push(server);
  return `http://127.0.0.1:${String(port)}`;
}

interface Installed {
  readonly endpoint?: string;
  readonly engine?: string;
  readonly health?: Readonly<Record<string, string>>;
  readonly natsUrl?: string;
  readonly model?: string;
  readonly baseFiles?: BaseFiles;
}

async function installed(more: Installed = {}): Promise<void> {
  const { url: natsUrl, password: natsPassword } = nats.credentials('cli');
  const nowhere = `http://127.0.0.1:${String(await freePort())}`;
  const named = { policy: 'backtalk', baseModel: 'own', natsUser: 'cli', natsPassword, blobStore: 'folder:blobs' };
  const connection = {
    endpoint: `${nowhere}/v1`,
    engine: nowhere,
    natsUrl,
    health: {},
    data,
    dataCapBytes: 1e9,
    ...named,
  };
  writeFileSync(`${data}/connection.json`, JSON.stringify({ ...connection, ...more }));
}

/** Of what was found. */
async function codes(): Promise<unknown> {
  const { status, values } = await runCommand(place, ['--data', data, 'doctor']);
  const findings = values[0]?.['findings'] as { code: string }[];
  expect(status).toBe(findings.length === 0 ? 0 : 1);
  return findings.map(({ code }) => code);
}

const part = { '/readyz': '{}', '/metrics': '' };

describe('the doctor', () => {
  it('the doctor finds nothing where nothing is wrong, and says so', async () => {
    const engine = await serve({
      '/v1/models': JSON.stringify({ data: [{ id: 'own' }, { id: 'x-v1', parent: 'own' }] }),
    });
    await installed({ engine, health: { judge: await serve(part) } });
    const { status, stdout } = await printCommand(place, ['--data', data, 'doctor']);
    expect({ status, stdout }).toEqual({ status: 0, stdout: 'Nothing was found.\n' });
    expect(await codes()).toEqual([]);
  });

  it('the doctor compares the base model’s weights with those of the last start', async () => {
    const weights = directory.join('model.safetensors');
    writeFileSync(weights, 'weights');
    const files = await baseFilesIn(directory.path);
    await installed({ ...(files === undefined ? {} : { baseFiles: files }) });
    expect(await codes()).toEqual([]);
    writeFileSync(weights, 'other weights');
    expect(await codes()).toEqual(['base_model']);
  });

  it('the doctor reads metrics, clocks, keys, and what the engine serves', async () => {
    const engine = await serve({ '/v1/models': JSON.stringify({ data: [{ id: 'other' }] }) });
    const metrics = 'backtalk_judge_votes_cast_total{result="unparsable"} 9\n';
    const judge = await serve({ ...part, '/metrics': metrics }, 60_000);
    await installed({ engine, health: { judge, gateway: `${engine}/gone` } });
    writeFileSync(`${data}/keys.json`, JSON.stringify({ keys: [] }));
    chmodSync(`${data}/keys.json`, 0o644);
    expect(await codes()).toEqual(['base_model', 'keys_file', 'part_down', 'clock_skew', 'invalid_votes']);
    writeFileSync(`${data}/keys.json`, '{', { mode: 0o600 });
    expect(await codes()).toContain('keys_file');
  });

  it('the doctor tells an installation that does not run from a port that another program has', async () => {
    const broker = `nats://127.0.0.1:${String(await freePort())}`;
    await installed({ natsUrl: broker, model: directory.join('gone') });
    expect(await codes()).toEqual(['not_running', 'base_model']);
    const other = await serve({ '/livez': '{}' });
    await installed({ natsUrl: broker, endpoint: `${other}/v1` });
    expect(await codes()).toEqual(['port_taken']);
    await installed({ natsUrl: broker, endpoint: `${other}/v1`, health: { gateway: other } });
    expect(await codes()).toEqual(['broker_away']);
  });

  it('the doctor finds a folder where no start ever was', async () => {
    expect(await codes()).toEqual(['not_running']);
  });

  it('the doctor misses the parts of a cluster of which none has a lease, and so does status', async () => {
    const cluster = { ...place, environment: {} };
    const { status, values } = await runCommand(cluster, ['doctor']);
    const parts = ['gateway', 'loader', 'publisher'].map((part) => ({
      code: 'part_down',
      what: `${part} is not ready: none holds a lease`,
      mend: 'look whether its pod or container runs, and at what it logs',
    }));
    expect({ status, values }).toEqual({ status: 1, values: [{ findings: parts }] });
    expect(await runCommand(cluster, ['status'])).toMatchObject({ status: 1 });
  });
});
