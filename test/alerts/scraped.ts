// Which processes of a test's machine are scraped, each as the container of the chart's pod that it would run in.
import type { TestMachine } from '../loop/machine.js';
import { gatewayPorts, replicaPorts } from '../loop/specs.js';
import { release, type Scraped } from './rendered.js';

export type Replica = 'gateway-2' | 'engine-2';

interface Shape {
  readonly replicas: readonly Replica[];
  /** A stand-in for the training worker has no metrics. */
  readonly hasTraining: boolean;
}

export function scrapedOf({ ports }: TestMachine, { replicas, hasTraining }: Shape): Scraped[] {
  const { trainingWorker, ...services } = ports.health;
  const of = (component: string, container: string, port: number, at = 0): Scraped => ({
    component,
    container,
    pod: `${release}-backtalk-${component}-${String(at)}`,
    port: container === 'engine' ? 'engine' : 'health',
    address: `127.0.0.1:${String(port)}`,
  });
  const own = Object.entries(services).map(([name, port]) =>
    of(name === 'loader' ? 'engine-serving' : name, name, port),
  );
  const [engine, , loader] = replicaPorts.map((offset) => ports.endpoint + offset);
  const pool = 'engine-serving';
  return [
    ...own,
    of('engine-serving', 'engine', ports.engine),
    ...(hasTraining ? [of('training', 'training', trainingWorker)] : []),
    ...(replicas.includes('gateway-2') ? [of('gateway', 'gateway', ports.endpoint + gatewayPorts[2], 1)] : []),
    ...(replicas.includes('engine-2') ? [of(pool, 'engine', engine ?? 0, 1), of(pool, 'loader', loader ?? 0, 1)] : []),
  ];
}
