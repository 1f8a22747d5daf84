// The containers of a release that run our own code, with the environment that they get and what their code reads of it.
import { contractOfCommands, contractOfService, contractOfWorker, type Contract } from './contract.js';
import { environmentOf, type PodFacts } from './environment.js';
import type { RenderedObject } from './helm.js';
import { containersOf, podsOf, type Container, type Pod } from './pods.js';

export const services = ['gateway', 'collector', 'judge', 'trainer', 'publisher', 'loader'] as const;

const contracts = new Map<string, Contract>([
  ...(await Promise.all(services.map(async (name) => [name, await contractOfService(name)] as const))),
  ['training', contractOfWorker('training')],
  ['engine', contractOfWorker('engine')],
  ['streams', await contractOfCommands()],
  ['commands', await contractOfCommands()],
]);

/** Secrets hold a text for whatever key is asked of them. */
const anySecret: Readonly<Record<string, string>> = new Proxy(
  {},
  { get: (_, key) => (key === 'valkey-url' ? 'redis://valkey.example.com:6379' : 'b'.repeat(48)) },
);
export const facts: PodFacts = {
  podIp: '10.1.2.3',
  podName: 'pod-0',
  secrets: new Proxy({}, { get: () => anySecret }),
};

export interface Started {
  readonly pod: Pod;
  readonly container: Container;
  readonly contract: Contract;
  readonly environment: Readonly<Record<string, string>>;
}

export function startedIn(objects: readonly RenderedObject[]): Started[] {
  return podsOf(objects).flatMap((pod) =>
    containersOf(pod).flatMap((container) => {
      const contract = contracts.get(container.name);
      const isForeign = container.name === 'engine' && !container.command.includes('backtalk_worker.engine');
      if (contract === undefined || isForeign) return [];
      return [{ pod, container, contract, environment: environmentOf(container, facts) }];
    }),
  );
}

/** What the code of the services says of their environments, by container; none where all would start. */
export function complaintsAbout(objects: readonly RenderedObject[]): string[] {
  return startedIn(objects)
    .filter(({ container }) => container.name !== 'engine')
    .map(({ container, contract, environment }) => `${container.name}: ${contract.complaints(environment)}`)
    .filter((line) => !line.endsWith(': '));
}
