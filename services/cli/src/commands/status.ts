// `status`: is everything up, what has been learned, and where turns wait or fell out, in the order of the loop.
import { deadLetters, FactReader, kvBucket, watchLeases, type Broker, type FactName } from '@backtalk/kit';
import { Routes } from '@backtalk/proto/weights';
import { withBrokerAlone, type Connection } from '../connection.js';
import type { CommandContext } from '../shell.js';
import { isLearningPaused, isStorageFull } from './learning.js';

const askWithinMs = 2_000;

interface PartStatus {
  readonly part: string;
  readonly ready: boolean;
  readonly why: string;
}

async function partStatus(part: string, url: string): Promise<PartStatus> {
  try {
    const response = await fetch(`${url}/readyz`, { signal: AbortSignal.timeout(askWithinMs) });
    return { part, ready: response.ok, why: response.ok ? '' : (await response.text()).slice(0, 200) };
  } catch {
    return { part, ready: false, why: 'does not answer' };
  }
}

/** A machine's folder names every part; in a cluster those are asked that hold a lease. */
async function partsOf(connection: Connection, broker: Broker): Promise<PartStatus[]> {
  const places = Object.entries(connection.health);
  if (places.length > 0) return Promise.all(places.map(([part, url]) => partStatus(part, url)));
  const view = await watchLeases(broker, '*');
  try {
    const leases = view.current().filter(({ healthAddress }) => healthAddress !== '');
    return await Promise.all(
      leases.map(({ kind, instance, healthAddress }) => partStatus(`${kind} ${instance}`, `http://${healthAddress}`)),
    );
  } finally {
    view.stop();
  }
}

const funnel: readonly FactName[] = [
  'turnOpened',
  'turnCompleted',
  'turnContinued',
  'turnJudged',
  'batchClosed',
  'weightsTrained',
  'weightsStaged',
];

async function engines(
  broker: Broker,
): Promise<{ engine: string; ready: boolean; reason: string; versions: string[] }[]> {
  const view = await watchLeases(broker, 'loader');
  try {
    return view.current().map(({ instance, engine }) => ({
      engine: engine?.url ?? instance,
      ready: engine?.ready ?? false,
      reason: engine?.reason ?? '',
      versions: engine?.versions ?? [],
    }));
  } finally {
    view.stop();
  }
}

async function learning(connection: Connection, broker: Broker) {
  const { policy } = connection;
  const routes = await kvBucket(broker, 'routes', Routes).get(policy);
  const parts = await partsOf(connection, broker);
  const paused = await isLearningPaused(broker, policy);
  const storageFull = await isStorageFull(broker, policy);
  const facts: Record<string, number> = Object.fromEntries(funnel.map((name) => [name, 0]));
  for await (const { name } of new FactReader(broker).headers(funnel)) facts[name] = (facts[name] ?? 0) + 1;
  return {
    parts,
    policy,
    stable: routes?.value.stable ?? '',
    previous: routes?.value.previous ?? '',
    paused,
    storageFull,
    facts,
    deadLetters: await deadLetters(broker).count(),
    engines: await engines(broker),
  };
}

export async function status({ connection, output }: CommandContext): Promise<void> {
  const { parts, ...learned } = await withBrokerAlone(connection, (broker) => learning(connection, broker));
  output.value({ parts, ...learned });
  output.table(
    ['part', 'state', 'why'],
    parts.map(({ part, ready, why }) => [part, ready ? 'ready' : 'NOT READY', why]),
  );
  output.line('');
  output.line(
    `${learned.policy} answers with ${learned.stable || 'nothing yet'}${learned.previous === '' ? '' : `; before it ${learned.previous}`}`,
  );
  const unpaused = learned.storageFull
    ? 'RESTS: the data folder has reached its cap (npm start -- --data-cap SIZE)'
    : 'is on';
  const state = learned.paused ? 'is PAUSED (npx backtalk resume)' : unpaused;
  output.line(`learning ${state}; dead letters: ${String(learned.deadLetters)}`);
  for (const { engine, ready, reason, versions } of learned.engines) {
    output.line(
      `engine ${engine}: ${ready ? 'ready' : `NOT READY (${reason})`}, holds ${versions.join(', ') || 'the base only'}`,
    );
  }
  output.line('');
  output.table(
    ['the loop', 'facts'],
    Object.entries(learned.facts).map(([name, count]) => [name, String(count)]),
  );
  if (parts.some(({ ready }) => !ready)) process.exitCode = 1;
}
