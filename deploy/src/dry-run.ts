// `--dry-run`: what a start on cards would run where, and nothing of it started or written. In: the options. Out: cards with who
// takes how much of each, then each process with its ports, variables and command line, as text or JSON; no key is shown.
import { gigabytes, inheritedEnvironment } from '@backtalk/kit';
import { chosenOnCards, type ChosenOnCards } from './box-choice.js';
import { composeVariables } from './compose-variables.js';
import type { ProcessSpec } from './child.js';
import { lastJudge } from './connection.js';
import { dataFolderAt, type DataFolder } from './data-folder.js';
import { namedJudge, type JudgeModel } from './judge-model.js';
import { machineOf } from './launch.js';
import type { BoxOptions, Options } from './options.js';
import { judgeEnginePort, portsFrom, replicaPorts, type Ports } from './ports.js';
import { machineProcesses } from './processes.js';
import { hiddenSecrets, withoutSecrets } from './secrets.js';
import { createTerminal } from './terminal.js';

interface PlannedProcess {
  readonly name: string;
  readonly cards: readonly number[];
  /** Of each of its cards. */
  readonly bytes: number;
  /** Left out where it takes none that is counted from the endpoint's. */
  readonly port?: number;
  readonly command: readonly string[];
  /** Beside what it inherits. */
  readonly environment: Readonly<Record<string, string>>;
}

export async function dryRun(
  root: string,
  options: Options,
  asked: BoxOptions,
  out: NodeJS.WritableStream,
): Promise<void> {
  const data = dataFolderAt(options.data);
  // Reasons are for people: what reads JSON gets nothing else.
  const terminal = createTerminal(asked.json || asked.compose ? process.stderr : out);
  const never = new AbortController();
  const chosen = await chosenOnCards({ root, options, data, terminal, signal: never.signal }, asked);
  if (asked.compose) {
    for (const [name, value] of Object.entries(composeVariables(chosen, options.port))) out.write(`${name}=${value}\n`);
    return;
  }
  const ports = portsFrom(options.port);
  const judge = chosen.box.judge === undefined ? judgeElsewhere(options, data) : undefined;
  const { host } = options;
  const machine = machineOf(
    { root, data, ports, host, ...chosen, ...(judge === undefined ? {} : { judge }) },
    hiddenSecrets,
  );
  const { servers, workers, services } = machineProcesses(machine);
  const processes = [...workers, ...servers, ...services].map((spec) => planned(spec, chosen, ports));
  const { engines, judge: ofJudge, training, idle, reasons } = chosen.box;
  if (asked.json) {
    const plan = { endpoint: options.port, engines, judge: ofJudge, training, idle };
    out.write(`${JSON.stringify({ ...plan, reasons: Object.fromEntries(reasons), processes }, null, 2)}\n`);
    return;
  }
  terminal.line('');
  terminal.table(cardRows(processes, idle));
  for (const process of processes) sayProcess(process, terminal);
  terminal.line('');
  terminal.line('Nothing was started. No card has confirmed these figures: memory is reckoned as `backtalk fit` does.');
}

/** As flags or the last start named it; whether it is there is not asked. */
function judgeElsewhere({ judge }: Options, data: DataFolder): JudgeModel | undefined {
  const named = namedJudge(judge, lastJudge(data));
  return named === undefined ? undefined : { ...named, key: named.keyFile === undefined ? '' : '***', away: '' };
}

function planned(spec: ProcessSpec, { box }: ChosenOnCards, ports: Ports): PlannedProcess {
  const engines = [...box.engines, ...(box.judge === undefined ? [] : [box.judge])];
  const engine = engines.find(({ name }) => name === spec.name);
  const training = spec.name === 'training-worker' ? box.training : undefined;
  const { cards } = engine ?? training ?? { cards: [] };
  const inherited = inheritedEnvironment();
  const own = Object.entries(spec.env).filter(([name, value]) => inherited[name] !== value);
  const port = portOf(spec.name, box, ports);
  return {
    name: spec.name,
    cards,
    bytes: Math.round(engine?.bytes ?? training?.bytes ?? 0),
    ...(port === undefined ? {} : { port }),
    command: [spec.command, ...spec.args],
    environment: withoutSecrets(Object.fromEntries(own)),
  };
}

function portOf(name: string, { engines, judge }: ChosenOnCards['box'], ports: Ports): number | undefined {
  const at = engines.findIndex((engine) => engine.name === name);
  if (at >= 0) return replicaPorts(ports, at).engine;
  if (name === judge?.name) return judgeEnginePort(ports);
  const replica = /^loader-(\d+)$/.exec(name)?.[1];
  if (replica !== undefined) return replicaPorts(ports, Number(replica) - 1).loaderGrpc;
  const known: Readonly<Record<string, number>> = {
    ...ports.health,
    ...ports.grpc,
    gateway: ports.endpoint,
    'training-worker': ports.grpc.trainingWorker,
    nats: ports.nats,
    valkey: ports.valkey,
  };
  return known[name];
}

function cardRows(processes: readonly PlannedProcess[], idle: readonly number[]): (readonly [string, string])[] {
  const used = [...new Set(processes.flatMap(({ cards }) => cards))].sort((one, other) => one - other);
  const rows = used.map((card): readonly [string, string] => {
    const here = processes.filter(({ cards }) => cards.includes(card));
    return [`card ${card}`, here.map(({ name, bytes }) => `${name} ${gigabytes(bytes)}`).join(', ')];
  });
  return [...rows, ...idle.map((card): readonly [string, string] => [`card ${card}`, 'idle'])];
}

function sayProcess(process: PlannedProcess, terminal: Pick<ReturnType<typeof createTerminal>, 'line'>): void {
  const { name, cards, port, command, environment } = process;
  const place = cards.length === 0 ? 'no card' : `card ${cards.join(', ')}`;
  terminal.line('');
  terminal.line(`${name} (${place}${port === undefined ? '' : `, port ${port}`})`);
  for (const [variable, value] of Object.entries(environment)) terminal.line(`  ${variable}=${value}`);
  terminal.line(`  ${command.map(quoted).join(' ')}`);
}

const quoted = (word: string) => (/^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", String.raw`'\''`)}'`);
