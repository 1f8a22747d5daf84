// A scratch installation that is broken and mended, clients that talk meanwhile, and a Prometheus that watches it by the chart's
// rules. In: what runs beside the usual. Out: the means of breaking it; what is away stays away until it is let back.
import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import type { ProcessSpec } from '@backtalk/deploy';
import { startFakeEngine } from '@backtalk/dialects/testing';
import { makeCertificates, until } from '@backtalk/kit/testing';
import { startCrowd, type Crowd } from '../loop/crowd.js';
import { startTestMachine, type TestMachine, type TestMachineOptions } from '../loop/machine.js';
import { judgeReply } from '../loop/stand-ins/judge-reply.js';
import { runPrometheus, type Alert } from '../observability/prometheus.js';
import { plantedReply } from './planted-reply.js';
import { prometheusOf, type Scraped } from './rendered.js';
import { scrapedOf, type Replica } from './scraped.js';
import { startWire, type Wire } from './wire.js';

export interface SceneOptions extends Partial<TestMachineOptions> {
  /** `gateway-2` reaches the broker over the scene's wire. */
  readonly replicas?: readonly Replica[];
  /** The judge's votes are cast by an engine of their own, at an address. */
  readonly hasJudgeEngine?: boolean;
  /** Before the first client talks. */
  readonly before?: (machine: TestMachine) => Promise<void>;
}

/** The Prometheus that watches. */
export interface Watch {
  alerts(): Promise<Alert[]>;
  /** Resolves when all that is scraped answers. */
  scraped(timeoutMs: number): Promise<void>;
  /** Another one in its place, which remembers nothing. */
  forget(): Promise<void>;
  stop(): Promise<void>;
}

export interface Scene {
  readonly machine: TestMachine;
  readonly watch: Watch;
  /** Between the broker and `gateway-2`. */
  readonly wire: Wire;
  /** `http://host:port`; empty where votes are cast by the engines of the serving pool. */
  readonly judgeEngine: string;
  /** The judge's engine is wrong on turns whose verdict is known, or right again. */
  misjudge(wrong: boolean): void;
  /** Kills the process with SIGKILL; whatever starts it again waits until it is let back. */
  away(name: string): void;
  back(name: string): Promise<void>;
  /** No file of the process may grow beyond so many bytes, as on a disk that is full; any number again without one. */
  limitFiles(name: string, bytes?: number): void;
  /** The collector starts again with a certificate that ends in so many days; its stores speak in clear all the same. */
  certify(days: number): Promise<void>;
  /** More clients, until the scene is hushed. */
  talk(clients: number, key?: string): Crowd;
  /** The clients that `talk` began leave. */
  hush(): Promise<void>;
  stop(): Promise<void>;
}

const steadyClients = 2;
/** A fault lasts minutes at most; clients outlive each. */
const patienceMs = 600_000;
/** The steady clients' own, and that of a client whose share of the log is small. */
export const keys = { steady: 'sk-steady', capped: 'sk-capped' };
const keyRecords = [
  { key: keys.steady, tenant: 'one', user: 'ann' },
  { key: keys.capped, tenant: 'two', user: 'bob', limits: { captureBytesPerDay: 1_000 } },
];

async function stopAll(crowds: readonly Crowd[]): Promise<void> {
  await Promise.all(crowds.map((crowd) => crowd.stop()));
}

export async function startScene(options: SceneOptions = {}): Promise<Scene> {
  const { replicas = [], hasJudgeEngine = false, before, environment = {}, ...machineOptions } = options;
  const { judges, misjudge } = await startJudges(hasJudgeEngine);
  const judge = { BACKTALK_JUDGE_URL: judges?.url ?? '', BACKTALK_JUDGE_DIALECT: 'vllm', ...environment['judge'] };
  const folder = mkdtempSync(join(tmpdir(), 'backtalk-alerts-'));
  const certificates = makeCertificates({ join: (...parts) => join(folder, ...parts) });
  const held = join(folder, 'held');
  mkdirSync(held);
  const raw = new Map<string, ProcessSpec>();
  const machine = await startTestMachine({
    engine: 'stand-in',
    training: 'stand-in',
    folder,
    keys: keyRecords,
    environment: { ...environment, judge, collector: { ...settingsOf(certificates), ...environment['collector'] } },
    ...machineOptions,
    adapt: (spec) => {
      raw.set(spec.name, spec);
      return holdable(spec, spec.name, held);
    },
  });
  await before?.(machine);
  const wire = await startWire(() => machine.ports.nats);
  if (replicas.includes('engine-2')) {
    const engine = raw.get('engine');
    await machine.addEngine(engine && holdable(engine, 'engine-2', held));
  }
  if (replicas.includes('gateway-2'))
    await machine.addGateway({ BACKTALK_NATS_URL: `nats://127.0.0.1:${String(wire.port)}` });
  const targets = scrapedOf(machine, { replicas, hasTraining: machineOptions.training === 'real' });
  const watch = await startWatch(targets);
  const clients = (count: number, seed: number, key: string) =>
    startCrowd({ gateway: machine.gateway, seed, clients: count, optsOut: 0.05, patienceMs, key });
  const steady = clients(steadyClients, 1, keys.steady);
  const more: Crowd[] = [];
  const hush = () => stopAll(more.splice(0));
  const { away, back } = holdsOf(machine, held);
  return {
    machine,
    watch,
    wire,
    judgeEngine: judges?.url ?? '',
    hush,
    misjudge,
    away,
    back,
    certify: (days) => {
      signFor(certificates, days);
      away('collector');
      return back('collector');
    },
    limitFiles: (name, bytes) => {
      execFileSync('prlimit', ['--pid', String(machine.pid(name)), `--fsize=${String(bytes ?? 'unlimited')}:`]);
    },
    talk: (count, key = keys.steady) => {
      const crowd = clients(count, 100 + more.length, key);
      more.push(crowd);
      return crowd;
    },
    stop: async () => {
      await stopAll([steady, ...more.splice(0)]);
      await watch.stop();
      wire.stop();
      await machine.stop();
      await judges?.stop();
    },
  };
}

function holdsOf(machine: TestMachine, held: string): Pick<Scene, 'away' | 'back'> {
  return {
    away: (name) => {
      writeFileSync(join(held, name), '');
      if (machine.pid(name) > 0) machine.kill(name);
    },
    back: (name) => {
      rmSync(join(held, name), { force: true });
      return machine.serves(name);
    },
  };
}

type Certificates = ReturnType<typeof makeCertificates>;

const settingsOf = ({ tlsCa, tlsCert, tlsKey }: Certificates) => ({
  BACKTALK_TLS_CA: tlsCa,
  BACKTALK_TLS_CERT: tlsCert,
  BACKTALK_TLS_KEY: tlsKey,
});

/** By the authority that made it, and from its request. */
function signFor({ tlsCa, tlsCert }: Certificates, days: number): void {
  const by = ['-in', 'tls.csr', '-CA', tlsCa, '-CAkey', 'ca.key', '-CAcreateserial', '-copy_extensions', 'copy'];
  const words = ['x509', '-req', ...by, '-days', String(days), '-out', tlsCert];
  execFileSync('openssl', words, { cwd: dirname(tlsCert), stdio: 'pipe' });
}

/** An engine for votes alone, where one is wanted. */
async function startJudges(isWanted: boolean) {
  let isWrong = false;
  const reply = (messages: readonly { readonly content: string }[]) =>
    plantedReply(messages, isWrong) ?? judgeReply(messages);
  const judges = isWanted ? await startFakeEngine({ tokenMs: 1, reply }) : undefined;
  const misjudge = (wrong: boolean): void => {
    isWrong = wrong;
  };
  return { judges, misjudge };
}

async function startWatch(targets: readonly Scraped[]): Promise<Watch> {
  let prometheus = await runPrometheus(prometheusOf(targets));
  return {
    alerts: () => prometheus.alerts(),
    scraped: async (timeoutMs) => {
      const allUp = async () => (await prometheus.up()).length >= targets.length;
      await until(allUp, { what: 'Everything is scraped', timeoutMs, everyMs: 500 });
    },
    forget: async () => {
      await prometheus.stop();
      prometheus = await runPrometheus(prometheusOf(targets));
    },
    stop: () => prometheus.stop(),
  };
}

/** Before it becomes the process, it waits while a file of that name is there. */
const waits = 'while [ -e "$0" ]; do sleep 0.1; done; exec "$@"';

function holdable(spec: ProcessSpec, name: string, held: string): ProcessSpec {
  return { ...spec, command: '/bin/sh', args: ['-c', waits, join(held, name), spec.command, ...spec.args] };
}
