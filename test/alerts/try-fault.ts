// One fault and its alert: quiet before, firing after the fault, gone after the mending. In: a scene. Out: a row with seconds.
// A fault that does not do what it should is a row with its problem, and the scene is mended all the same.
import { asBacktalkError } from '@backtalk/kit';
import { until } from '@backtalk/kit/testing';
import type { Alert } from '../observability/prometheus.js';
import type { Fault } from './fault.js';
import { namespace, release } from './rendered.js';
import type { Scene } from './scene.js';

export interface Row {
  readonly alert: string;
  readonly fault: string;
  readonly firedSeconds?: number;
  readonly clearedSeconds?: number;
  /** Other alerts that fired between the fault and its end. */
  readonly also: readonly string[];
  /** Empty where all went as it should. */
  readonly problem: string;
}

const withinMs = 240_000;

export async function tryFault(scene: Scene, { alert, fault, labels = {}, break: breakIt }: Fault): Promise<Row> {
  const also = new Set<string>();
  const wanted = { alertname: alert, namespace, release, ...labels };
  const firing = async () => {
    const found = (await scene.prometheus.alerts()).filter(({ state }) => state === 'firing');
    for (const { labels: own } of found) if (own['alertname'] !== alert) also.add(own['alertname'] ?? '');
    return found.some((one) => isLike(one, wanted));
  };
  const row = () => ({ alert, fault, also: [...also].sort() });
  let mend: () => Promise<void> = () => Promise.resolve();
  let firedSeconds: number | undefined;
  try {
    await scene.calm(withinMs);
    const brokenMs = Date.now();
    mend = await breakIt(scene);
    await until(firing, { what: `${alert} fires`, timeoutMs: withinMs, everyMs: 250 });
    firedSeconds = (Date.now() - brokenMs) / 1_000;
    const mendedMs = Date.now();
    const mending = mend();
    mend = () => mending;
    await mending;
    await until(async () => !(await firing()), { what: `${alert} is gone`, timeoutMs: withinMs, everyMs: 250 });
    return { ...row(), firedSeconds, clearedSeconds: (Date.now() - mendedMs) / 1_000, problem: '' };
  } catch (thrown) {
    await mend().catch(() => undefined);
    return { ...row(), ...(firedSeconds !== undefined && { firedSeconds }), problem: asBacktalkError(thrown).message };
  } finally {
    await scene.hush();
  }
}

function isLike({ labels }: Alert, wanted: Readonly<Record<string, string>>): boolean {
  return Object.entries(wanted).every(([name, value]) => labels[name] === value);
}
