// One fault and its alerts: quiet before, firing after the fault, gone after the mending. In: a scene. Out: a row an alert, with
// seconds. A fault that does not do what it should gives rows with a problem, and the scene is mended all the same.
import { asBacktalkError } from '@backtalk/kit';
import { until } from '@backtalk/kit/testing';
import type { Alert } from '../observability/prometheus.js';
import type { Expected, Fault, Mend } from './fault.js';
import { namespace, release } from './rendered.js';
import type { Scene } from './scene.js';

export interface Row extends Expected {
  readonly fault: string;
  readonly firedSeconds?: number;
  readonly clearedSeconds?: number;
  /** Other alerts that fired between the fault and its end. */
  readonly also: readonly string[];
  /** Empty where all went as it should. */
  readonly problem: string;
}

const withinMs = 300_000;
const everyMs = 250;

export async function tryFault(scene: Scene, { fault, fires, break: breakIt }: Fault): Promise<Row[]> {
  const also = new Set<string>();
  const firedAfter = new Map<Expected, number>();
  const clearedAfter = new Map<Expected, number>();
  const firing = async (): Promise<Expected[]> => {
    const found = (await scene.watch.alerts()).filter(({ state }) => state === 'firing');
    for (const { labels } of found) also.add(labels['alertname'] ?? '');
    return fires.filter((expected) => found.some((alert) => isOf(alert, expected)));
  };
  let mend: Mend | undefined;
  let problem = '';
  try {
    await scene.watch.scraped(withinMs);
    await until(async () => (await firing()).length === 0, {
      what: 'Quiet before the fault',
      timeoutMs: withinMs,
      everyMs,
    });
    also.clear();
    const brokenMs = Date.now();
    mend = await breakIt(scene);
    const allFired = async () => {
      for (const expected of await firing()) note(firedAfter, expected, brokenMs);
      return firedAfter.size === fires.length;
    };
    await until(allFired, { what: 'Firing', timeoutMs: withinMs, everyMs });
    const mendedMs = Date.now();
    const mending = mend();
    mend = () => mending;
    await mending;
    const allGone = async () => {
      const left = await firing();
      for (const expected of fires) if (!left.includes(expected)) note(clearedAfter, expected, mendedMs);
      return left.length === 0;
    };
    await until(allGone, { what: 'Clearing', timeoutMs: withinMs, everyMs });
  } catch (thrown) {
    problem = asBacktalkError(thrown).message;
    await Promise.resolve(mend?.()).catch(() => undefined);
  } finally {
    await scene.hush();
  }
  return fires.map((expected) => {
    const [firedSeconds, clearedSeconds] = [firedAfter.get(expected), clearedAfter.get(expected)];
    const others = [...also].filter((name) => name !== expected.alert).sort();
    return {
      ...expected,
      fault,
      also: others,
      ...(firedSeconds !== undefined && { firedSeconds }),
      ...(clearedSeconds !== undefined && { clearedSeconds }),
      problem: clearedSeconds === undefined ? problem : '',
    };
  });
}

function note(seconds: Map<Expected, number>, expected: Expected, sinceMs: number): void {
  if (!seconds.has(expected)) seconds.set(expected, (Date.now() - sinceMs) / 1_000);
}

function isOf({ labels }: Alert, { alert, labels: own = {} }: Expected): boolean {
  const wanted = { alertname: alert, namespace, release, ...own };
  return Object.entries(wanted).every(([name, value]) => labels[name] === value);
}
