// The life of one machine, as a person sees it: checks, the start, the words that tell a newcomer what to do, the way down.
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { inheritedEnvironment, shellQuoted } from '@backtalk/kit';
import { chosenModels, type ChosenModels } from './chosen-models.js';
import { loopbackHosts, refuseShortKey } from './endpoint-key.js';
import { openDataFolder, type DataFolder } from './data-folder.js';
import { isElsewhere, reasonOfEngine } from './engine-choice.js';
import { deployErrors } from './errors.js';
import { lockDataFolder } from './folder-lock.js';
import { reasonOfJudge } from './judge-model.js';
import { adminConnection, launch, reportRoom } from './launch.js';
import type { Options } from './options.js';
import { endpointUrl, portsFrom, refuseForeignHost, type Ports } from './ports.js';
import { endSurvivors } from './process-record.js';
import { tellServed } from './served-versions.js';
import { SizeWatch } from './size-watch.js';
import type { Terminal } from './terminal.js';

interface Welcome {
  readonly ports: Ports;
  readonly host: string;
  readonly data: DataFolder;
  readonly models: ChosenModels;
  /** Of the installation, whose own data folder commands find by themselves. */
  readonly root: string;
}

function welcome(terminal: Terminal, { ports, host, data, models, root }: Welcome): void {
  const { policies, engine, device, judge } = models;
  const endpoint = endpointUrl(host, ports);
  const isKeyless = loopbackHosts.has(host) && !existsSync(data.keys);
  const metrics = (port: number) => `http://127.0.0.1:${String(port)}/metrics`;
  terminal.line('');
  terminal.line('Backtalk serves. Talk to it, answer back, and its weights change while it answers.');
  terminal.line('');
  terminal.table([
    ['endpoint', endpoint],
    ['page', `${new URL(endpoint).origin}/`],
    [policies.length === 1 ? 'model' : 'models', policies.join(', ')],
    ['engine', reasonOfEngine(engine, models.box)],
    ['training', device.reason],
    ['judge', reasonOfJudge(judge, inheritedEnvironment())],
    ['key', isKeyless ? 'none needed on this machine (any string works)' : `one of ${data.keys}`],
    ...Object.entries(ports.health).map(([name, port]): [string, string] => [`${name} metrics`, metrics(port)]),
    ...(isElsewhere(engine) ? [] : [['engine metrics', metrics(ports.engine)] as const]),
    ['state and logs', data.path],
  ]);
  terminal.line('');
  terminal.line('Paste this into another terminal:');
  terminal.line(
    `  curl ${endpoint}/chat/completions ${isKeyless ? '' : '-H "Authorization: Bearer $BACKTALK_API_KEY" '}-H 'content-type: application/json' -d '{"model":"${policies[0] ?? ''}","messages":[{"role":"user","content":"Why is the sky blue?"}]}'`,
  );
  terminal.line('');
  const named = data.path === join(root, '.backtalk') ? '' : ` --data ${shellQuoted(data.path)}`;
  const commands = ['chat', 'simulate --user short --sessions 200', 'status'];
  terminal.line(`Or: ${commands.map((words) => `npx backtalk ${words}${named}`).join(' · ')}`);
  terminal.line('Ctrl-C stops everything.');
}

export async function startMachine(root: string, options: Options, terminal: Terminal): Promise<void> {
  const stopping = new AbortController();
  const stopped = new Promise<void>((resolve) => {
    for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) {
      process.on(signal, () => {
        resolve();
        stopping.abort();
      });
    }
  });
  const data = openDataFolder(options.data);
  const { host } = options;
  const clientKey = options.box?.said.SGLANG_API_KEY;
  if (clientKey !== undefined) refuseShortKey(clientKey, host);
  await refuseForeignHost(host);
  if (!loopbackHosts.has(host) && clientKey === undefined && !existsSync(data.keys))
    throw deployErrors.needsKeys({ host, file: data.keys });
  const release = lockDataFolder(data);
  const survivors = await endSurvivors(data.processes);
  if (survivors.length > 0) terminal.step(`ended what a killed start left running: ${survivors.join(', ')}`);
  const ports = portsFrom(options.port);
  const models = await chosenModels({ root, options, data, terminal, signal: stopping.signal });
  const { policies } = models;
  const { supervisor, secrets, up } = launch({
    root,
    data,
    ports,
    terminal,
    host,
    ...models,
    dataCapBytes: options.dataCapBytes,
    ...(options.restore === undefined ? {} : { restore: options.restore }),
    ...(clientKey === undefined ? {} : { clientKey }),
  });
  const sizeWatch = new SizeWatch({
    path: data.path,
    capBytes: options.dataCapBytes,
    terminal,
    report: (full) => reportRoom(ports, secrets, policies, full),
  });
  process.once('exit', () => {
    supervisor.killAll();
  });
  let tellNoMore = (): Promise<void> => Promise.resolve();
  // Asked to stop during the checks, it starts nothing.
  const rising = stopping.signal.aborted ? Promise.resolve() : up(stopping.signal);
  try {
    await Promise.race([rising, stopped]);
    if (!stopping.signal.aborted) {
      sizeWatch.start();
      welcome(terminal, { ports, host, data, models, root });
      tellNoMore = await tellServed(() => adminConnection(ports, secrets.passwords.admin), terminal);
      await stopped;
    }
    terminal.line('');
    terminal.step('stopping');
  } finally {
    await sizeWatch.stop();
    await tellNoMore();
    await supervisor.stop();
    // What is still on its way up must not write into a folder, or a broker, that is the next start's.
    await rising.catch(() => undefined);
    release();
  }
  terminal.step('everything has stopped');
}
