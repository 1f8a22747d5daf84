// No service starts for production on an installation that may lose what it was given: each is started as a process, on a
// broker of one server, whose streams have one copy.
import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { brokerServices } from '@backtalk/kit';
import { freePort, repositoryRoot, startNats, TemporaryDirectory, type TestNats } from '@backtalk/kit/testing';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { z } from 'zod';

/** Not waited for by a service that refuses, but by one that starts all the same. */
const runsForMs = 120_000;

const services = brokerServices.filter((name) => name !== 'cli');
const logLine = z.looseObject({
  level: z.string(),
  event: z.string(),
  error: z.looseObject({ code: z.string(), message: z.string() }).optional(),
});

interface Ended {
  readonly status: number | string | null | undefined;
  readonly errors: readonly z.infer<typeof logLine>[];
}

const directory = new TemporaryDirectory('production');
let nats: TestNats;

beforeAll(async () => {
  nats = await startNats();
});

afterAll(async () => {
  await nats?.stop();
  directory.remove();
});

async function environmentOf(service: (typeof services)[number]): Promise<Record<string, string>> {
  const { url, user, password } = nats.credentials(service);
  const nobody = `127.0.0.1:${await freePort()}`;
  return {
    BACKTALK_PROFILE: 'production',
    BACKTALK_NATS_URL: url,
    BACKTALK_NATS_USER: user,
    BACKTALK_NATS_PASSWORD: password,
    BACKTALK_VALKEY_URL: `redis://${nobody}`,
    BACKTALK_HEALTH_ADDRESS: '127.0.0.1:0',
    BACKTALK_LISTEN: '127.0.0.1:0',
    BACKTALK_GRPC_ADDRESS: '127.0.0.1:0',
    BACKTALK_HASH_SECRET: 'a secret of the tests, long enough',
    BACKTALK_BLOB_STORE: `folder:${directory.join('blobs')}`,
    BACKTALK_SPOOL_DIR: directory.join('spool'),
    BACKTALK_ADAPTER_DIR: directory.join('adapters'),
    BACKTALK_TRAINING_WORKER: nobody,
    BACKTALK_ENGINE_URL: `http://${nobody}`,
  };
}

/** Runs a service until it ends, or until it says that it has started, which ends it here. */
function runToEnd(service: string, env: Record<string, string>): Promise<Ended> {
  const program = join(repositoryRoot(), 'services', service, 'dist', 'main.js');
  const options = { env, cwd: directory.path, timeout: runsForMs, killSignal: 'SIGKILL' } as const;
  return new Promise((resolve) => {
    const child = execFile(process.execPath, [program], options, (error, stdout) => {
      const lines = stdout.split('\n').filter((line) => line !== '');
      const said = lines.map((line) => logLine.parse(JSON.parse(line)));
      resolve({ status: error === null ? 0 : error.code, errors: said.filter(({ level }) => level === 'error') });
    });
    child.stdout?.on('data', (chunk: string) => {
      if (chunk.includes('service_started')) child.kill('SIGKILL');
    });
  });
}

describe('for production, on streams with one copy', () => {
  it.each(services)('the %s refuses one copy in production, in one line that says what to do', async (service) => {
    const { status, errors } = await runToEnd(service, await environmentOf(service));
    expect(errors).toMatchObject([{ event: 'service_start_failed', error: { code: 'installation_unfit' } }]);
    const message = errors[0]?.error?.message ?? '';
    expect(message).toMatch(
      /^BACKTALK_PROFILE is production, .*\bfewer than 3 copies, run "npx backtalk streams ensure"/,
    );
    expect(message).not.toContain('\n');
    expect(status).toBe(1);
  });
});
