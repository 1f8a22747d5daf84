// Who calls addresses that pods tell of themselves, in their leases. In: the environments of a release. Out: who will call
// whom. Which service reads which leases is asked of the services' code.
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { repositoryRoot } from '@backtalk/kit/testing';
import { ownAddress, type Teller } from './addresses.js';
import type { Flow } from './policies.js';

/** By service: the kinds of leases that its code watches. */
export function leasesWatched(service: string): string[] {
  const folder = join(repositoryRoot(), 'services', service, 'src');
  const sources = readdirSync(folder, { recursive: true, encoding: 'utf8' }).filter((name) =>
    /(?<!\.test)\.ts$/.test(name),
  );
  const calls = sources.flatMap((name) => [
    ...readFileSync(join(folder, name), 'utf8').matchAll(/watchLeases\(\w+, '([\w*]+)'[,)]|watchEngineLeases\(\w+\)/g),
  ]);
  return [...new Set(calls.map(([, kind = 'loader']) => kind))].sort();
}

/** What is done with each address; engines are called by those whose pool they are in. */
export function leasedFlows(tellers: readonly Teller[]): Flow[] {
  const commands = tellers.some(({ pod }) => pod.component === 'commands') ? ['commands'] : [];
  const isJudgedElsewhere = tellers.some(({ environment }) => 'BACKTALK_JUDGE_URL' in environment);
  return tellers.flatMap(({ pod, container, environment, told }) => {
    const pools = (environment['BACKTALK_ENGINE_POOLS'] ?? '').split(',');
    const callers: Readonly<Record<string, readonly string[]>> = {
      'gateway BACKTALK_GRPC_ADVERTISED': ['publisher'],
      'publisher BACKTALK_GRPC_ADVERTISED': commands,
      'loader BACKTALK_GRPC_ADVERTISED': ['publisher'],
      'gateway BACKTALK_HEALTH_ADDRESS': commands,
      'publisher BACKTALK_HEALTH_ADDRESS': commands,
      'loader BACKTALK_HEALTH_ADDRESS': commands,
      'loader BACKTALK_ENGINE_URL': [
        // Probes go to engines that evaluate, and where none is ready, to any.
        'publisher',
        // The trainer has prompts rendered by engines that serve.
        ...(pools.includes('serving') ? ['gateway', 'trainer'] : []),
        ...(pools.includes('judge') && !isJudgedElsewhere ? ['judge'] : []),
      ],
    };
    return told
      .filter(({ host }) => host === ownAddress)
      .flatMap(({ variable, port }) =>
        (callers[`${container.name} ${variable}`] ?? ['nobody']).map((from) => ({ from, to: pod.component, port })),
      );
  });
}
