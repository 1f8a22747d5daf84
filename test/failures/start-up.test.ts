import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { ensureStreams, inheritedEnvironment, type BrokerService } from '@backtalk/kit';
import { connectValkey } from '@backtalk/kit/valkey';
import {
  freePort,
  repositoryRoot,
  silentLogger,
  startNats,
  startValkey,
  TemporaryDirectory,
  until,
  type TestNats,
  type TestValkey,
} from '@backtalk/kit/testing';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';

const services = ['gateway', 'collector', 'judge', 'trainer', 'publisher', 'loader'] as const;

/** What is promised; the time that others kept it from a processor is no part of it. */
const idleEndsWithinMs = 2_000;

let nats: TestNats;
let valkey: TestValkey;
let folder: TemporaryDirectory;

beforeAll(async () => {
  folder = new TemporaryDirectory('start-up');
  [nats, valkey] = await Promise.all([startNats({ streams: false }), startValkey()]);
  // Its users and its port are known now.
  await nats.kill();
}, 60_000);

afterAll(async () => {
  await Promise.all([nats?.stop(), valkey?.stop()]);
  folder?.remove();
});

class Program {
  output = '';
  private readonly child: ChildProcess;
  private readonly ended: Promise<unknown>;

  constructor(words: readonly string[], environment: Readonly<Record<string, string>>) {
    const env = { ...inheritedEnvironment(), ...environment };
    this.child = spawn(process.execPath, words, { env, stdio: ['ignore', 'pipe', 'pipe'] });
    this.ended = once(this.child, 'exit');
    for (const stream of [this.child.stdout, this.child.stderr])
      stream?.on('data', (chunk: Buffer) => {
        this.output += chunk.toString();
      });
  }

  get hasEnded(): boolean {
    return this.child.exitCode !== null || this.child.signalCode !== null;
  }

  says(words: string): Promise<boolean> {
    return until(() => this.output.includes(words), { what: `"${words}" in ${this.output}`, timeoutMs: 60_000 });
  }

  /** The exit status, or the signal that ended it. */
  async terminate(): Promise<unknown> {
    return (await this.terminateTimed()).status;
  }

  /** And the milliseconds that it took, without those in which others kept it from a processor. */
  async terminateTimed(): Promise<{ status: unknown; ownMs: number }> {
    const before = this.keptWaitingMs() ?? 0;
    let kept = before;
    const startedMs = performance.now();
    this.child.kill('SIGTERM');
    const hasEnded = () => {
      kept = this.keptWaitingMs() ?? kept;
      return this.hasEnded;
    };
    await until(hasEnded, { what: `The end of ${this.child.spawnargs.join(' ')}`, timeoutMs: 8_000 });
    const status = this.child.exitCode ?? this.child.signalCode;
    return { status, ownMs: performance.now() - startedMs - (kept - before) };
  }

  /** By the kernel's count, of its main thread; undefined once it has ended. */
  private keptWaitingMs(): number | undefined {
    try {
      const [, waited] = readFileSync(`/proc/${String(this.child.pid)}/schedstat`, 'utf8').split(' ');
      return Number(waited) / 1e6;
    } catch {
      return undefined;
    }
  }

  async kill(): Promise<void> {
    this.child.kill('SIGKILL');
    await this.ended;
  }
}

const mainOf = (name: BrokerService) => join(repositoryRoot(), 'services', name, 'dist', 'main.js');
const script = (text: string) => `data:text/javascript,${encodeURIComponent(text)}`;
/** Says when a service's own modules begin to be loaded, which takes most of a start. */
const reportsLoads = [
  '--import',
  script(
    `import { register } from 'node:module'; register(${JSON.stringify(
      script(`export async function load(url, context, next) {
      if (/services\\/\\w+\\/dist\\/service.js$/.test(url)) process._rawDebug('loads the service');
      return next(url, context);
    }`),
    )});`,
  ),
];

interface Ready {
  readonly status: number;
  readonly checks: Readonly<Record<string, true | string>>;
}

class ServiceProgram extends Program {
  private constructor(
    readonly name: BrokerService,
    private readonly healthPort: number,
    environment: Readonly<Record<string, string>>,
  ) {
    super([...reportsLoads, mainOf(name)], environment);
  }

  static async start(name: BrokerService, more: Readonly<Record<string, string>> = {}): Promise<ServiceProgram> {
    const { url, user, password } = nats.credentials(name);
    const [health, listen, grpc] = await Promise.all([freePort(), freePort(), freePort()]);
    const at = (port: number): string => `127.0.0.1:${String(port)}`;
    return new ServiceProgram(name, health, {
      BACKTALK_NATS_URL: url,
      BACKTALK_NATS_USER: user,
      BACKTALK_NATS_PASSWORD: password,
      BACKTALK_VALKEY_URL: valkey.url,
      BACKTALK_HEALTH_ADDRESS: at(health),
      BACKTALK_LISTEN: at(listen),
      BACKTALK_GRPC_ADDRESS: at(grpc),
      BACKTALK_HASH_SECRET: 'h'.repeat(32),
      BACKTALK_INSTANCE: 'one',
      BACKTALK_BLOB_STORE: `folder:${folder.join('blobs')}`,
      BACKTALK_SPOOL_DIR: folder.join('spool'),
      BACKTALK_ADAPTER_DIR: folder.join('adapters'),
      ...more,
    });
  }

  async metrics(): Promise<string> {
    return (await fetch(`http://127.0.0.1:${String(this.healthPort)}/metrics`)).text();
  }

  async alive(): Promise<number> {
    return (await fetch(`http://127.0.0.1:${String(this.healthPort)}/livez`)).status;
  }

  async ready(): Promise<Ready> {
    const response = await fetch(`http://127.0.0.1:${String(this.healthPort)}/readyz`);
    const { checks } = (await response.json()) as Pick<Ready, 'checks'>;
    return { status: response.status, checks };
  }
}

describe('a process that starts', () => {
  it.each(services)('%s hears SIGTERM while it waits for a broker', async (name) => {
    const program = await ServiceProgram.start(name);
    try {
      await program.says('broker_awaited');
      expect(await program.terminate()).toBe(0);
    } finally {
      await program.kill();
    }
  });

  it('the command that makes the streams hears SIGTERM while it waits for a broker', async () => {
    const { url, password } = nats.credentials('admin');
    const main = join(repositoryRoot(), 'services', 'cli', 'dist', 'main.js');
    const environment = { BACKTALK_NATS_URL: url, BACKTALK_NATS_USER: 'admin', BACKTALK_NATS_PASSWORD: password };
    const program = new Program([main, 'streams', 'ensure', '--wait', '600'], environment);
    try {
      await program.says('It waits for the broker');
      expect(await program.terminate()).toBe(143);
    } finally {
      await program.kill();
    }
  });

  it.each(services)('%s hears SIGTERM while its own modules are loaded', async (name) => {
    const program = await ServiceProgram.start(name);
    try {
      await program.says('loads the service');
      // A handler of its own ended it; without one it would be killed, or as the first process of a container hear nothing.
      expect(await program.terminate()).toBe(0);
      expect(program.output).not.toContain('broker_awaited');
    } finally {
      await program.kill();
    }
  });

  it('hears SIGTERM while the kit is loaded', async () => {
    const text =
      "import { runProcess } from '@backtalk/kit/process'; setInterval(() => console.log('loads'), 10);" +
      'await runProcess(() => new Promise(() => undefined));';
    const program = new Program(['--input-type=module', '--eval', text], {});
    await program.says('loads');
    expect(await program.terminate()).toBe(0);
  });
});

describe('services that start before the broker and its streams', () => {
  let programs: ServiceProgram[] = [];
  const each = (check: (program: ServiceProgram) => Promise<void>) => Promise.all(programs.map(check));

  beforeAll(async () => {
    programs = await Promise.all(services.map((name) => ServiceProgram.start(name)));
  });

  afterAll(() => each((program) => program.kill()));

  it('all services wait, alive and not ready, and start when broker and streams are there', async () => {
    await each(async (program) => {
      await program.says('broker_awaited');
      expect(await program.alive()).toBe(200);
      expect(await program.ready()).toMatchObject({ status: 503, checks: { broker: 'the broker cannot be reached' } });
    });
    await nats.restart();
    await each(async (program) => {
      await program.says('stream_awaited');
      expect(await program.alive()).toBe(200);
      const { status, checks } = await program.ready();
      expect({ status, broker: checks['broker'] }).toEqual({ status: 503, broker: true });
      expect(checks['streams']).toMatch(/^stream \w+ cannot be seen/);
    });
    await ensureStreams(await nats.connect('admin'));
    await each(async (program) => {
      await program.says('service_started');
      const { checks } = await program.ready();
      expect(checks).toMatchObject({ service: true, broker: true, streams: true });
      expect(program.hasEnded).toBe(false);
      expect(program.output.match(/stream_awaited|broker_awaited/g)).toHaveLength(2);
    });
  });

  it('all services end within 2 s of SIGTERM while nothing is in flight, whatever else the machine does', async () => {
    await each(async (program) => {
      const { status, ownMs } = await program.terminateTimed();
      expect(status, program.name).toBe(0);
      expect(ownMs, program.name).toBeLessThan(idleEndsWithinMs);
    });
  });
});

it('no secret stands in what a service writes, whatever goes wrong', async () => {
  const canary = (name: string): string => `zqx${name}vwk`.padEnd(40, 'z');
  await nats.restart();
  await ensureStreams(await nats.connect('admin'));
  const listen = await freePort();
  const guarded = connectValkey({ url: valkey.url, name: 'test', logger: silentLogger }, 'waiter');
  await guarded.config('SET', 'requirepass', 'another');
  const { host } = new URL(valkey.url);
  const secrets = {
    BACKTALK_LISTEN: `127.0.0.1:${String(listen)}`,
    BACKTALK_LOG_LEVEL: 'debug',
    BACKTALK_VALKEY_URL: `redis://:${canary('valkey')}@${host}`,
    BACKTALK_HASH_SECRET: canary('hash'),
    BACKTALK_ENGINE_KEY: canary('engine'),
    BACKTALK_PUBLISHER_TO_GATEWAY_TOKEN: canary('token'),
  };
  const gateway = await ServiceProgram.start('gateway', secrets);
  const refused = await ServiceProgram.start('collector', { BACKTALK_NATS_PASSWORD: canary('nats') });
  const halfTls = await ServiceProgram.start('loader', { ...secrets, BACKTALK_TLS_CA: '/nowhere/ca.crt' });
  try {
    await gateway.says('service_started');
    await gateway.says('valkey');
    await refused.says('broker_refused');
    await halfTls.says('BACKTALK_TLS_CERT and BACKTALK_TLS_KEY are not set; give all three files or none.');
    const bodies = [`${canary('body')} is no JSON`, `{"model": "${canary('body')}`, '{"messages": []}'];
    const answers = bodies.map(async (body) => {
      const headers = { 'content-type': 'application/json', authorization: `Bearer ${canary('key')}` };
      const response = await fetch(`http://127.0.0.1:${String(listen)}/v1/chat/completions`, {
        method: 'POST',
        headers,
        body,
      });
      return response.text();
    });
    const outputs = [gateway, refused, halfTls].map(({ output }) => output);
    const written = [...outputs, await gateway.metrics(), ...(await Promise.all(answers))].join('');
    expect(written).toContain('ReplyError');
    expect(written.match(/zqx\w+vwk/g)).toBeNull();
  } finally {
    guarded.disconnect();
    await Promise.all([gateway.kill(), refused.kill(), halfTls.kill()]);
  }
});
