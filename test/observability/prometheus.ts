// A real Prometheus for a test. In: what to scrape. Out: a server that is asked over its own API, and stopped at the end.
// Where the set-up could not get one, it says why; it never replaces Prometheus by anything else.
import { spawn, spawnSync } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { freePort, until } from '@backtalk/kit/testing';
import { stringify } from 'yaml';
import { root } from '../loop/machine.js';

export interface Target {
  readonly job: string;
  /** `host:port` */
  readonly address: string;
  /** The target's own labels stand, where it has any that the scrape sets. */
  readonly honorLabels?: boolean;
}

export interface Series {
  readonly metric: Readonly<Record<string, string>>;
  /** Numbers only; what is not a number is left out. */
  readonly values: readonly number[];
}

export interface Asked {
  readonly expr: string;
  readonly fromMs: number;
  readonly toMs: number;
  readonly stepSeconds: number;
}

export interface Alert {
  readonly labels: Readonly<Record<string, string>>;
  readonly state: 'pending' | 'firing';
}

export interface Prometheus {
  /** Of a range of time. Throws what Prometheus says of a query that it refuses. */
  range(asked: Asked): Promise<Series[]>;
  /** Addresses that answered their last scrape. */
  up(): Promise<string[]>;
  /** Those that are pending or fire now. */
  alerts(): Promise<Alert[]>;
  stop(): Promise<void>;
}

const folder = join(root, '.venv', 'tools', 'prometheus');
/** In place of the label that a cluster's scrapes carry. */
export const namespace = 'talk';

/** Why there is none; undefined when there is one. */
export function prometheusAbsent(): string | undefined {
  if (existsSync(join(folder, 'prometheus'))) return undefined;
  const reason = join(folder, 'absent.txt');
  return existsSync(reason)
    ? readFileSync(reason, 'utf8').trim()
    : 'the set-up with --with development has not been run';
}

/** What promtool says, which Prometheus brings along. */
export function promtool(args: readonly string[]): { readonly status: number | null; readonly said: string } {
  const { status, stdout, stderr } = spawnSync(join(folder, 'promtool'), args, { encoding: 'utf8', timeout: 280_000 });
  return { status, said: stdout + stderr };
}

interface Answer {
  readonly status: string;
  readonly error?: string;
  readonly data?: {
    readonly result?: readonly { readonly metric: Record<string, string>; readonly values?: [number, string][] }[];
    readonly activeTargets?: readonly { readonly scrapeUrl: string; readonly health: string }[];
    readonly alerts?: readonly Alert[];
  };
}

export interface PrometheusFiles {
  /** Written as prometheus.yml. */
  readonly config: object;
  /** Further files beside it, by name. */
  readonly files?: Readonly<Record<string, object>>;
  readonly flags?: readonly string[];
}

export function startPrometheus(targets: readonly Target[]): Promise<Prometheus> {
  return runPrometheus({ config: configOf(targets) });
}

export async function runPrometheus({ config, files = {}, flags = [] }: PrometheusFiles): Promise<Prometheus> {
  const work = mkdtempSync(join(tmpdir(), 'backtalk-prometheus-'));
  const port = await freePort();
  const url = `http://127.0.0.1:${String(port)}`;
  for (const [name, content] of Object.entries({ ...files, 'prometheus.yml': config }))
    writeFileSync(join(work, name), stringify(content));
  const child = spawn(
    join(folder, 'prometheus'),
    [
      ...['--config.file', join(work, 'prometheus.yml'), '--storage.tsdb.path', join(work, 'data')],
      ...['--web.listen-address', `127.0.0.1:${String(port)}`, '--log.level', 'error'],
      ...flags,
    ],
    { stdio: 'ignore', env: { GOMAXPROCS: '1' } },
  );
  const ended = new Promise<void>((resolve) => {
    child.once('close', () => {
      resolve();
    });
  });
  const killNow = () => child.kill('SIGKILL');
  process.once('exit', killNow);
  const ask = async (path: string, parameters: Readonly<Record<string, string>> = {}): Promise<Answer> => {
    const query = new URLSearchParams(parameters).toString();
    const response = await fetch(`${url}${path}${query === '' ? '' : `?${query}`}`);
    return (await response.json()) as Answer;
  };
  await until(async () => (await fetch(`${url}/-/ready`)).ok, { what: 'Prometheus is ready', timeoutMs: 60_000 });
  return {
    range: async ({ expr, fromMs, toMs, stepSeconds }) => {
      const { data, error } = await ask('/api/v1/query_range', {
        query: expr,
        start: String(fromMs / 1_000),
        end: String(toMs / 1_000),
        step: String(stepSeconds),
      });
      if (error !== undefined) throw new SyntaxError(`${error} in ${expr}`);
      return (data?.result ?? []).map(({ metric, values = [] }) => ({
        metric,
        values: values.map(([, value]) => Number(value)).filter((value) => Number.isFinite(value)),
      }));
    },
    up: async () => {
      const { data } = await ask('/api/v1/targets');
      return (data?.activeTargets ?? [])
        .filter(({ health }) => health === 'up')
        .map(({ scrapeUrl }) => new URL(scrapeUrl).host);
    },
    alerts: async () => [...((await ask('/api/v1/alerts')).data?.alerts ?? [])],
    stop: async () => {
      child.kill('SIGTERM');
      await ended;
      process.off('exit', killNow);
      rmSync(work, { recursive: true, force: true });
    },
  };
}

/** Waits until a query gives numbers, from `fromMs` to now. */
export async function seriesOf(
  prometheus: Prometheus,
  { expr, fromMs, stepSeconds = 2 }: { readonly expr: string; readonly fromMs: number; readonly stepSeconds?: number },
): Promise<Series[]> {
  return until(
    async () => {
      const series = await prometheus.range({ expr, fromMs, toMs: Date.now(), stepSeconds });
      return series.some(({ values }) => values.length > 0) && series;
    },
    { what: `A series for ${expr}`, timeoutMs: 60_000, everyMs: 500 },
  );
}

function configOf(targets: readonly Target[]): object {
  return {
    global: { scrape_interval: '1s', scrape_timeout: '1s' },
    scrape_configs: targets.map(({ job, address, honorLabels = false }) => ({
      job_name: job,
      honor_labels: honorLabels,
      static_configs: [{ targets: [address], labels: { namespace } }],
    })),
  };
}
