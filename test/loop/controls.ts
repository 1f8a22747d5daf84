// The knobs of the stand-ins, and what the parts of a machine count: each over HTTP, as an operator would.
import type { FakeCounts, FakeFaults, FakeSettings } from '@backtalk/dialects/testing';
import type { TestMachine } from './machine.js';
import type { StandInCounts } from './stand-ins/training-worker.js';

type EngineSettings = Partial<Omit<FakeSettings, 'reply' | 'alternatives'>>;

export async function setEngine(url: string, settings: EngineSettings): Promise<void> {
  await fetch(`${url}/fake/settings`, { method: 'POST', body: JSON.stringify(settings) });
}

export async function breakEngine(url: string, faults: FakeFaults): Promise<void> {
  await setEngine(url, { faults });
}

export async function engineCounts(url: string): Promise<FakeCounts & { readonly adapters: readonly string[] }> {
  return (await (await fetch(`${url}/fake/counts`)).json()) as FakeCounts & { readonly adapters: readonly string[] };
}

function trainingWorker({ ports }: TestMachine): string {
  return `http://127.0.0.1:${String(ports.health.trainingWorker)}`;
}

export async function holdTraining(machine: TestMachine, hold: boolean): Promise<void> {
  await fetch(`${trainingWorker(machine)}/${hold ? 'hold' : 'release'}`, { method: 'POST' });
}

/** What steps report in place of the usual, by name of the measurement. */
export async function setFigures(machine: TestMachine, figures: Readonly<Record<string, number>>): Promise<void> {
  await fetch(`${trainingWorker(machine)}/figures`, { method: 'POST', body: JSON.stringify(figures) });
}

export async function trainingCounts(machine: TestMachine): Promise<StandInCounts> {
  return (await (await fetch(`${trainingWorker(machine)}/counts`)).json()) as StandInCounts;
}

export type HealthName = keyof TestMachine['ports']['health'];

export async function metricsOf(machine: TestMachine, name: HealthName): Promise<string> {
  return (await fetch(`http://127.0.0.1:${String(machine.ports.health[name])}/metrics`)).text();
}

/** Sum of a metric over its labels, or over those lines that name `label`; 0 when it is not there. */
export async function metric(machine: TestMachine, name: HealthName, metricName: string, label = ''): Promise<number> {
  const lines = (await metricsOf(machine, name)).split('\n');
  const own = lines.filter((line) => line.startsWith(`${metricName} `) || line.startsWith(`${metricName}{`));
  const values = own
    .filter((line) => line.includes(label))
    .map((line) => Number(line.slice(line.lastIndexOf(' ') + 1)));
  return values.reduce((sum, value) => sum + value, 0);
}
