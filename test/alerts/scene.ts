// A scratch installation that is broken and mended, clients that talk meanwhile, and a Prometheus that watches it by the chart's
// rules. In: which models stand behind it. Out: the means of breaking it; what is away stays away until it is let back.
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { ProcessSpec } from '@backtalk/deploy';
import { until } from '@backtalk/kit/testing';
import { startCrowd, type Crowd } from '../loop/crowd.js';
import { LogBook } from '../loop/fact-log.js';
import { startTestMachine, type TestMachine, type TestMachineOptions } from '../loop/machine.js';
import { runPrometheus, type Prometheus } from '../observability/prometheus.js';
import { prometheusOf, release, type Scraped } from './rendered.js';

export interface Scene {
  readonly machine: TestMachine;
  readonly prometheus: Prometheus;
  readonly book: LogBook;
  /** Resolves when all that is scraped answers and no alert fires. */
  calm(timeoutMs: number): Promise<void>;
  /** Kills the process with SIGKILL; whatever starts it again waits until it is let back. */
  away(name: string): void;
  back(name: string): Promise<void>;
  /** More clients, until the scene has them all stopped. */
  talk(clients: number, key?: string): Crowd;
  /** The clients that `talk` began leave. */
  hush(): Promise<void>;
  stop(): Promise<void>;
}

const steadyClients = 3;
/** A fault lasts minutes at most; clients outlive each. */
const patienceMs = 600_000;

export async function startScene(options: Partial<TestMachineOptions> = {}): Promise<Scene> {
  const folder = mkdtempSync(join(tmpdir(), 'backtalk-alerts-'));
  const held = join(folder, 'held');
  mkdirSync(held);
  const machine = await startTestMachine({
    engine: 'stand-in',
    training: 'stand-in',
    folder,
    adapt: (spec) => holdable(spec, held),
    ...options,
  });
  const targets = targetsOf(machine, options.training === 'real');
  const prometheus = await runPrometheus(prometheusOf(targets));
  const book = await LogBook.open(machine);
  const clients = (count: number, seed: number, key?: string) =>
    startCrowd({
      gateway: machine.gateway,
      seed,
      clients: count,
      optsOut: 0.05,
      patienceMs,
      ...(key !== undefined && { key }),
    });
  const steady = clients(steadyClients, 1);
  const more: Crowd[] = [];
  const hush = async () => {
    await Promise.all(more.splice(0).map((crowd) => crowd.stop()));
  };
  return {
    machine,
    prometheus,
    book,
    calm: async (timeoutMs) => {
      const allUp = async () => (await prometheus.up()).length >= targets.length;
      await until(allUp, { what: 'Everything is scraped', timeoutMs, everyMs: 500 });
      const quiet = async () => (await prometheus.alerts()).every(({ state }) => state !== 'firing');
      await until(quiet, { what: 'No alert fires', timeoutMs, everyMs: 500 });
    },
    away: (name) => {
      writeFileSync(join(held, name), '');
      if (machine.pid(name) > 0) machine.kill(name);
    },
    back: async (name) => {
      rmSync(join(held, name), { force: true });
      await machine.serves(name);
    },
    talk: (count, key) => {
      const crowd = clients(count, 100 + more.length, key);
      more.push(crowd);
      return crowd;
    },
    hush,
    stop: async () => {
      await Promise.all([hush(), steady.stop()]);
      await book.close();
      await prometheus.stop();
      await machine.stop();
    },
  };
}

/** Before it becomes the process, it waits while a file of the process's name is there. */
const waits = 'while [ -e "$0" ]; do sleep 0.1; done; exec "$@"';

function holdable(spec: ProcessSpec, held: string): ProcessSpec {
  return { ...spec, command: '/bin/sh', args: ['-c', waits, join(held, spec.name), spec.command, ...spec.args] };
}

function targetsOf({ ports }: TestMachine, withTraining: boolean): Scraped[] {
  const { trainingWorker, ...services } = ports.health;
  const at = (port: number) => `127.0.0.1:${String(port)}`;
  const pod = (component: string) => `${release}-backtalk-${component}-0`;
  const engine = 'engine-serving';
  const own = Object.entries(services).map(([name, port]): Scraped => {
    const component = name === 'loader' ? engine : name;
    return { component, container: name, pod: pod(component), port: 'health', address: at(port) };
  });
  return [
    ...own,
    { component: engine, container: 'engine', pod: pod(engine), port: 'engine', address: at(ports.engine) },
    ...(withTraining
      ? [
          {
            component: 'training',
            container: 'training',
            pod: pod('training'),
            port: 'health' as const,
            address: at(trainingWorker),
          },
        ]
      : []),
  ];
}
