// The compose system as an operator starts it, under a name, a port and secrets of its own. In: the tag of its images.
// Out: its address, a key that opens it, and how each container ended. Nothing of it is left after `remove`.
import { randomBytes } from 'node:crypto';
import { chmodSync, writeFileSync } from 'node:fs';
import { callPairs, tokenVariable } from '@backtalk/kit';
import { freePort, TemporaryDirectory } from '@backtalk/kit/testing';
import { keysFileOf } from '../loop/machine.js';
import { docker } from './docker.js';

const minuteMs = 60_000;
/** A container in one line of `docker inspect`: its service, its state, its exit code. */
const inspected = '{{index .Config.Labels "com.docker.compose.service"}} {{.State.Status}} {{.State.ExitCode}}';

export class Trial {
  readonly key = `bt-${randomBytes(16).toString('hex')}`;
  readonly gateway: string;
  private readonly words: readonly string[];

  private constructor(
    private readonly keys: TemporaryDirectory,
    private readonly port: number,
    private readonly tag: string,
  ) {
    this.gateway = `http://127.0.0.1:${String(port)}`;
    const files = ['--file', 'deploy/compose.yaml', '--file', 'test/images/compose.quick.yaml'];
    this.words = ['compose', ...files, '--project-name', `backtalk-${String(process.pid)}`];
    writeFileSync(keys.join('keys.json'), keysFileOf([{ key: this.key, tenant: 'trial', user: 'trial' }]));
    // The services' user reads it, whoever runs this.
    chmodSync(keys.path, 0o755);
  }

  static async of(tag: string): Promise<Trial> {
    return new Trial(new TemporaryDirectory('trial-keys'), await freePort(), tag);
  }

  /** Gives seconds. */
  async build(service: string): Promise<number> {
    const since = performance.now();
    await this.compose(['build', service], 30 * minuteMs);
    return (performance.now() - since) / 1_000;
  }

  /** Returns when every part is healthy. */
  async up(): Promise<void> {
    await this.compose(['up', '--detach', '--no-build', '--wait', '--wait-timeout', '300'], 6 * minuteMs);
  }

  /** As an operator stops it: each container has its own grace. */
  async stop(): Promise<void> {
    await this.compose(['stop'], 5 * minuteMs);
  }

  /** Exit codes by name; undefined while a container runs. */
  async ends(): Promise<Record<string, number | undefined>> {
    const listed = await this.compose(['ps', '--all', '--quiet'], minuteMs);
    const ids = listed.split('\n').filter((line) => /^[0-9a-f]+$/.test(line));
    // Not the list's states: for a moment after a stop has returned, the engine still lists a container as running.
    const lines = (await docker(['inspect', '--format', inspected, ...ids], minuteMs)).split('\n');
    return Object.fromEntries(
      lines.map((line) => {
        const [service = '', state, code] = line.split(' ');
        return [service, state === 'exited' ? Number(code) : undefined] as const;
      }),
    );
  }

  logs(): Promise<string> {
    return this.compose(['logs', '--no-color', '--tail', '60'], minuteMs);
  }

  async remove(): Promise<void> {
    await this.compose(['down', '--volumes', '--timeout', '1'], 2 * minuteMs);
    this.keys.remove();
  }

  private compose(words: readonly string[], timeoutMs: number): Promise<string> {
    return docker([...this.words, ...words], timeoutMs, {
      BACKTALK_TAG: this.tag,
      BACKTALK_PORT: String(this.port),
      BACKTALK_KEYS: this.keys.path,
      BACKTALK_HASH_SECRET: randomSecret,
      BACKTALK_NATS_PASSWORD: randomPassword,
      BACKTALK_VALKEY_PASSWORD: randomSecret,
      ...Object.fromEntries(callPairs.map((pair) => [tokenVariable(pair), `${randomSecret}-of-${pair}`])),
      BACKTALK_ENGINE_KEY: randomSecret,
      BACKTALK_JUDGE_ENGINE_KEY: `${randomSecret}-of-the-judge`,
    });
  }
}

const randomSecret = randomBytes(32).toString('hex');
/** Letters first, or the broker's configuration reads a number. */
const randomPassword = `b${randomBytes(16).toString('hex')}`;
