// `status`: is everything up, what has been learned, and where turns wait or fell out, in the order of the loop.
import { deadLetters, FactReader, givenUpBy, kvBucket, watchLeases, type Broker, type FactName } from '@backtalk/kit';
import { Routes } from '@backtalk/proto/weights';
import { withBrokerAlone, type Connection } from '../connection.js';
import type { CommandContext } from '../shell.js';
import { Metrics } from '../prometheus.js';
import { heldBecause, isLearningPaused, isStorageFull } from './learning.js';

const askWithinMs = 2_000;

export interface PartStatus {
  readonly part: string;
  /** Of its health server, without a path. */
  readonly url: string;
  readonly ready: boolean;
  readonly why: string;
}

/** @param url of its health server, without a path */
export async function partStatus(part: string, url: string): Promise<PartStatus> {
  try {
    const response = await fetch(`${url}/readyz`, { signal: AbortSignal.timeout(askWithinMs) });
    const why = response.ok ? await complaintOf(part, url) : (await response.text()).slice(0, 200);
    return { part, url, ready: response.ok, why };
  } catch {
    return { part, url, ready: false, why: 'does not answer' };
  }
}

/** @param url of a part's health server, without a path */
export async function metricsOf(url: string): Promise<{ readonly text: string; readonly date: string }> {
  const response = await fetch(`${url}/metrics`, { signal: AbortSignal.timeout(askWithinMs) });
  return { text: await response.text(), date: response.headers.get('date') ?? '' };
}

/** What a part that works does not do: a judge that is wrong on turns whose verdict is known is heard, and its votes do not count. */
async function complaintOf(part: string, url: string): Promise<string> {
  const { text } = await metricsOf(url);
  const [, refused] = /^backtalk_\w+_leased_engines_refused ([1-9]\d*)$/m.exec(text) ?? [];
  if (refused !== undefined)
    return `sends nothing to ${refused} leased engines: BACKTALK_ENGINE_HOSTS does not list their hosts`;
  const unforced = /^backtalk_judge_fields_refused\{field="response_format"\} 1$/m.test(text);
  const isUntrusted = /^backtalk_judge_votes_trusted 0$/m.test(text);
  if (isUntrusted) return 'its votes do not count: too few planted turns are judged right';
  return [spentBy(text), stepsFailing(text), unforced ? 'its engine forces no form of answers' : '']
    .filter((said) => said !== '')
    .join('; ');
}

/** Of a training worker whose newest step failed; empty of any other. */
function stepsFailing(text: string): string {
  const metrics = new Metrics(text);
  const [code] = Object.keys(metrics.by('backtalk_training_last_step_failed', 'code'));
  if (code === undefined) return '';
  const failed = metrics.sum('backtalk_training_steps_total', { outcome: code });
  return `its newest step failed: ${code}, ${failed === 1 ? 'once' : `${String(failed)} times`} since its start`;
}

/** What a judge that reads has used since its start; empty where it has asked nothing. */
function spentBy(text: string): string {
  const metrics = new Metrics(text);
  const requests = metrics.by('backtalk_judge_requests_total', 'outcome');
  const asked = Object.values(requests).reduce((sum, count) => sum + count, 0);
  if (asked === 0) return '';
  const tokens = (kind: string) => String(metrics.sum('backtalk_judge_tokens_total', { kind }));
  const cost = metrics.sum('backtalk_judge_cost_total');
  const failed = Object.entries(requests)
    .filter(([outcome]) => outcome !== 'answered')
    .map(([outcome, count]) => `, ${String(count)} ${outcome}`);
  const used = `${tokens('prompt')} tokens of prompts, ${tokens('cached')} more from a cache, ${tokens('answer')} written`;
  const price = cost === 0 ? '' : `, cost ${cost.toPrecision(3)}`;
  return `since its start ${String(asked)} requests${failed.join('')}: ${used}${price}`;
}

/** What holds a lease in each. */
const leasedInClusters = ['gateway', 'loader', 'publisher'];

/** A machine's folder names every part; in a cluster those are asked that hold a lease. */
async function partsOf(connection: Connection, broker: Broker): Promise<PartStatus[]> {
  const places = Object.entries(connection.health);
  if (places.length > 0) return Promise.all(places.map(([part, url]) => partStatus(part, url)));
  const view = await watchLeases(broker, '*');
  try {
    const leases = view.current();
    const missing = (connection.data === undefined ? leasedInClusters : [])
      .filter((kind) => leases.every((lease) => lease.kind !== kind))
      .map((part) => ({ part, url: '', ready: false, why: 'none holds a lease' }));
    const asked = leases
      .filter(({ healthAddress }) => healthAddress !== '')
      .map(({ kind, instance, healthAddress }) => partStatus(`${kind} ${instance}`, `http://${healthAddress}`));
    return [...missing, ...(await Promise.all(asked))];
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

/** So many facts before the newest batch's are looked at: turns may have been settled since. */
const recentFacts = 100;

interface NewestBatches {
  /** Why the newest that was to be trained made no version: a guard, a failure, an operator; empty where it did or may yet. */
  readonly withoutVersion: string;
  /** Turns that they settled because they have more tokens than a sample may have. */
  readonly tooLong: number;
}

async function newestBatches(broker: Broker, policy: string): Promise<NewestBatches> {
  const reader = new FactReader(broker);
  const last = await reader.last('batchClosed', { policy });
  let [withoutVersion, tooLong] = ['', 0];
  if (last === undefined) return { withoutVersion, tooLong };
  const from = Math.max(1, last.sequence - recentFacts);
  for await (const { message } of reader.read(['batchClosed'], { filter: { batchClosed: { policy } }, from })) {
    const { why, detail, samples, settled } = message;
    if (givenUpBy.has(why)) withoutVersion = [why, detail].filter((word) => word !== '').join(': ');
    else if (samples.length > 0) withoutVersion = '';
    tooLong += settled.filter(({ reason }) => reason === 'too_long').length;
  }
  return { withoutVersion, tooLong };
}

export interface PolicyStatus extends NewestBatches {
  readonly policy: string;
  readonly stable: string;
  readonly previous: string;
  readonly paused: boolean;
  readonly storageFull: boolean;
  /** Why training rests after versions burned or batches given up in a row; empty where it does not. */
  readonly held: string;
}

async function policyStatus(broker: Broker, policy: string): Promise<PolicyStatus> {
  const routes = await kvBucket(broker, 'routes', Routes).get(policy);
  return {
    policy,
    stable: routes?.value.stable ?? '',
    previous: routes?.value.previous ?? '',
    paused: await isLearningPaused(broker, policy),
    storageFull: await isStorageFull(broker, policy),
    held: await heldBecause(broker, policy),
    ...(await newestBatches(broker, policy)),
  };
}

/** Everything that `status` says, and that `doctor` looks for trouble in. */
export async function learning(connection: Connection, broker: Broker) {
  const parts = await partsOf(connection, broker);
  const policies: PolicyStatus[] = [];
  for (const policy of connection.policies) policies.push(await policyStatus(broker, policy));
  const reader = new FactReader(broker);
  const counted = await Promise.all(funnel.map(async (name) => [name, await reader.count(name)] as const));
  return {
    parts,
    ...(await policyStatus(broker, connection.policy)),
    policies,
    facts: Object.fromEntries(counted),
    deadLetters: await deadLetters(broker).count(),
    engines: await engines(broker),
  };
}

function lineOf({ policy, stable, previous, paused, storageFull, held }: PolicyStatus): string {
  const free = held === '' ? 'is on' : `is HELD: ${held} (npx backtalk resume --policy ${policy})`;
  const unpaused = storageFull ? 'RESTS: the data folder has reached its cap (npm start -- --data-cap SIZE)' : free;
  const state = paused ? `is PAUSED (npx backtalk resume --policy ${policy})` : unpaused;
  const before = previous === '' ? '' : `; before it ${previous}`;
  return `${policy} answers with ${stable || 'nothing yet'}${before}; learning ${state}`;
}

export async function status({ connection, output }: CommandContext): Promise<void> {
  const { parts, ...learned } = await withBrokerAlone(connection, (broker) => learning(connection, broker));
  output.value({ parts, ...learned });
  output.table(
    ['part', 'state', 'why'],
    parts.map(({ part, ready, why }) => [part, ready ? 'ready' : 'NOT READY', why]),
  );
  output.line('');
  for (const one of learned.policies) {
    output.line(lineOf(one));
    if (one.withoutVersion !== '')
      output.line(`the last batch of ${one.policy} made no version: ${one.withoutVersion}`);
    if (one.tooLong > 0)
      output.line(
        `turns of ${one.policy} too long to be trained on, of late: ${String(one.tooLong)} (npx backtalk recipe)`,
      );
  }
  output.line(`dead letters: ${String(learned.deadLetters)}`);
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
