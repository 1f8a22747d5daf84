// `doctor`: looks at an installation, running or not, and says what is commonly set up wrong. It sees what `status` and the
// parts' metrics say, the data folder, and whether endpoint and engine open to whom they should; it changes nothing.
import { existsSync, statfsSync } from 'node:fs';
import { networkInterfaces } from 'node:os';
import { baseFilesIn, cappedBytes, isBacktalkError, readConfig } from '@backtalk/kit';
import { z } from 'zod';
import { cliSettings } from '../config.js';
import { findConnection, withBrokerAlone, type Connection, type NamedInstallation } from '../connection.js';
import { diagnose, neverStarted, type Finding, type Loop, type Seen } from '../diagnosis.js';
import { keysIn, problemOfKeys } from '../key-store.js';
import type { Output } from '../output.js';
import { Metrics } from '../prometheus.js';
import { learning, metricsOf } from './status.js';

export async function doctor(output: Output, flags: NamedInstallation): Promise<void> {
  const { data } = readConfig(cliSettings);
  const findings = await findingsAt(flags, data);
  output.value({ findings });
  for (const { what, mend } of findings) output.line(`${what}: ${mend}`);
  if (findings.length === 0) output.line('Nothing was found.');
  else process.exitCode = 1;
}

async function findingsAt(flags: NamedInstallation, data: string): Promise<readonly Finding[]> {
  let connection: Connection;
  try {
    connection = findConnection(flags, data);
  } catch (error) {
    if (!isBacktalkError(error, 'not_running')) throw error;
    return [neverStarted(flags.data ?? data)];
  }
  return diagnose(await look(connection));
}

async function look(connection: Connection): Promise<Seen> {
  const { data, endpoint, natsUrl, baseModel, model, engineChoice } = connection;
  const [loop, engine, status] = await Promise.all([loopOf(connection), engineOf(connection), answerOf(endpoint)]);
  const places = loop?.parts ?? [];
  const texts = await Promise.all(places.map(({ part, url }) => seenOf(part, url)));
  const known = texts.flatMap((text) => text ?? []);
  return {
    where: data ?? natsUrl,
    endpoint,
    loop,
    stranger: loop !== undefined || status === 0 ? 'none' : (await isOurs(connection)) ? 'gateway' : 'other',
    disk: data === undefined ? undefined : diskOf(data, connection.dataCapBytes ?? 0),
    base: {
      name: baseModel,
      gone: model === undefined || existsSync(model) ? '' : model,
      changed: await changedBase(connection),
      served: engine.models,
    },
    engineStatus: engine.status,
    engineAt: typeof engineChoice === 'object' ? engineChoice.url : '',
    keys: data === undefined ? { file: '', problem: '' } : { file: keysIn(data), problem: problemOfKeys(keysIn(data)) },
    openAt: loop === undefined ? '' : await openAt(endpoint),
    metrics: new Metrics(known.map(({ text }) => text).join('\n')),
    clocks: Object.fromEntries(known.map(({ part, ahead }) => [part, ahead])),
  };
}

/** Folder of a base model whose weights are other ones than at the last start; empty where they are the same, or not known. */
async function changedBase({ baseFiles: known }: Connection): Promise<string> {
  if (known === undefined) return '';
  const found = await baseFilesIn(known.folder, known);
  return found === undefined || found.digest === known.digest ? '' : known.folder;
}

/** Undefined where the broker does not answer; a broker that answers and refuses is an error of its own. */
async function loopOf(connection: Connection): Promise<Loop | undefined> {
  try {
    return await withBrokerAlone(connection, (broker) => learning(connection, broker));
  } catch (error) {
    if (isBacktalkError(error, 'unreachable')) return undefined;
    throw error;
  }
}

/** A gateway that has lost its broker answers all the same. What a cluster's endpoint leads to is known to be ours. */
const isOurs = async ({ data, health }: Connection) =>
  data === undefined || (await ask(`${health['gateway'] ?? ''}/livez`, {}))?.status === 200;

async function seenOf(part: string, url: string) {
  try {
    const askedAt = Date.now();
    const { text, date } = await metricsOf(url);
    const ahead = (Date.parse(date) - (askedAt + Date.now()) / 2) / 1_000;
    return { part, text, ahead: Number.isFinite(ahead) ? ahead : 0 };
  } catch {
    // A part that does not answer is a finding already.
    return undefined;
  }
}

const answersWithinMs = 2_000;

async function ask(url: string, headers: Readonly<Record<string, string>>): Promise<Response | undefined> {
  try {
    return await fetch(url, { headers, signal: AbortSignal.timeout(answersWithinMs) });
  } catch {
    return undefined;
  }
}

/** Status of a request without a key; 0 without an answer. */
const answerOf = async (endpoint: string) => (await ask(`${endpoint}/models`, {}))?.status ?? 0;

const modelList = z.object({ data: z.array(z.object({ id: z.string(), parent: z.string().nullish() })) });

async function engineOf({ engine, engineKey }: Connection): Promise<{ status: number; models: readonly string[] }> {
  const headers: Record<string, string> = engineKey === '' ? {} : { authorization: `Bearer ${engineKey}` };
  const response = await ask(`${engine}/v1/models`, headers);
  const list = modelList.safeParse(await response?.json().catch(() => undefined));
  // What has a parent is a version.
  const models = (list.data?.data ?? []).filter(({ parent }) => parent === undefined || parent === null);
  return { status: response?.status ?? 0, models: models.map(({ id }) => id) };
}

/** The first address of this machine that other machines can reach, and that answers without a key. */
async function openAt(endpoint: string): Promise<string> {
  const addresses = Object.values(networkInterfaces()).flatMap((list) => list ?? []);
  const far = addresses.filter(({ internal, family }) => !internal && family === 'IPv4');
  for (const { address } of far) {
    const url = new URL(endpoint);
    url.hostname = address;
    if ((await answerOf(url.href)) === 200) return url.href;
  }
  return '';
}

function diskOf(data: string, capBytes: number): Seen['disk'] {
  const { bavail, bsize } = statfsSync(data);
  return { usedBytes: cappedBytes(data), capBytes, freeBytes: bavail * bsize };
}
