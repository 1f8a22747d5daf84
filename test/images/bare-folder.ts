// A folder as an image's build has it, and an unprivileged user who works in it. In: what to copy and run. Out: what came
// of it. Commands get nothing of this machine's environment but how packages are reached.
import { execFile, execFileSync } from 'node:child_process';
import { chmodSync, cpSync, existsSync, mkdirSync, symlinkSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { repositoryRoot, TemporaryDirectory } from '@backtalk/kit/testing';
import { copies, type Stage } from './dockerfile.js';

/** The user without rights of most systems; the images' own has no name here. */
const nobody = '65534';
const systemPython = '/usr/bin/python3';
const left = /(^|\/)(node_modules|dist|gen|\.turbo|\.venv|__pycache__|[^/]+\.egg-info|[^/]+\.tsbuildinfo)(\/|$)/;

export interface Ended {
  readonly status: number;
  readonly output: string;
}

/** Why commands cannot be run as somebody without rights; undefined when they can. */
export function whyNotUnprivileged(): string | undefined {
  if (process.getuid?.() !== 0) return undefined;
  return existsSync('/usr/bin/setpriv') ? undefined : 'this is root, and there is no setpriv';
}

export class BareFolder {
  private readonly directory = new TemporaryDirectory('image');
  private readonly home = new TemporaryDirectory('image-home');

  constructor() {
    mkdirSync(this.home.join('bin'));
    symlinkSync(systemPython, this.home.join('bin', 'python'));
    for (const { path } of [this.directory, this.home]) this.give(path);
  }

  /** With all that a stage copies from the folder of the build. */
  static of(stage: Stage): BareFolder {
    const folder = new BareFolder();
    for (const { sources, target } of copies(stage)) {
      for (const source of sources) folder.copy(source, sources.length > 1 ? './' : target);
    }
    folder.give();
    return folder;
  }

  get path(): string {
    return this.directory.path;
  }

  /** Where programs of the base are; `python` is the system's, which everybody may run. */
  get basePath(): string {
    return [this.home.join('bin'), dirname(process.execPath), '/usr/local/bin', '/usr/bin', '/bin'].join(':');
  }

  copy(source: string, target: string): void {
    const from = join(repositoryRoot(), source);
    const to = join(this.path, target.endsWith('/') || target === '.' ? join(target, source) : target);
    mkdirSync(dirname(to), { recursive: true });
    cpSync(from, to, { recursive: true, filter: (path) => !left.test(path.slice(repositoryRoot().length)) });
  }

  /** As root, everything in it becomes the unprivileged user's. */
  give(path = this.path): void {
    chmodSync(path, 0o755);
    if (process.getuid?.() === 0) execFileSync('chown', ['-R', `${nobody}:${nobody}`, path]);
  }

  async run(command: string, environment: Record<string, string>, timeoutMs: number): Promise<Ended> {
    const words = ['sh', '-c', command];
    const unprivileged = ['setpriv', `--reuid=${nobody}`, `--regid=${nobody}`, '--clear-groups', '--no-new-privs'];
    const [program = '', ...rest] = process.getuid?.() === 0 ? [...unprivileged, ...words] : words;
    const env = { PATH: this.basePath, HOME: this.home.path, npm_config_registry: registry(), ...environment };
    const options = { cwd: this.path, env, timeout: timeoutMs, maxBuffer: 16 * 1024 * 1024 };
    try {
      const { stdout, stderr } = await promisify(execFile)(program, rest, options);
      return { status: 0, output: stdout + stderr };
    } catch (error) {
      const field = (name: string): unknown => (error instanceof Error ? Reflect.get(error, name) : undefined);
      return { status: Number(field('code') ?? 1), output: `${String(field('stdout'))}${String(field('stderr'))}` };
    }
  }

  remove(): void {
    this.directory.remove();
    this.home.remove();
  }
}

function registry(): string {
  return execFileSync('npm', ['config', 'get', 'registry'], { encoding: 'utf8', cwd: repositoryRoot() }).trim();
}
