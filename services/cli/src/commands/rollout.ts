// `rollout`: the model tries tasks, each several times, in environments that check what it does: programs of the user's, of which some are at
// work at once. In: a file of tasks, a program. Out: how each attempt went, told to the gateway, so that attempts at one task are rewarded
// beside each other; and how versions fared. What was measured is told and shown however the command ends.
import { setMaxListeners } from 'node:events';
import { readFileSync } from 'node:fs';
import { asBacktalkError, newId } from '@backtalk/kit';
import { attempt, type Attempted, type AttemptSettings } from '../attempting.js';
import { askEndpoint, patiently } from '../endpoint.js';
import { cliErrors } from '../errors.js';
import type { Output } from '../output.js';
import type { CommandContext } from '../shell.js';
import { interruptedStatus } from '../stop-signal.js';

export interface RolloutFlags extends AttemptSettings {
  /** At each task. */
  readonly attempts: number;
  readonly rounds: number;
  readonly atOnce: number;
}

interface Task {
  /** Of the file, from 1. */
  readonly line: number;
  /** One JSON value. */
  readonly json: string;
}

/** Attempts that are rewarded beside each other. */
interface Group {
  readonly name: string;
  readonly task: Task;
  readonly round: number;
  readonly done: Attempted[];
  /** Why attempts came to no score. */
  readonly broken: string[];
  /** Outcomes of sessions that had been silent for too long. */
  late: number;
  /** Outcomes that the gateway has not heard of. */
  untold: number;
  isTold: boolean;
}

/** What is wrong with the endpoint, or with whom it knows, is wrong with all that is tried. */
const endpointStatuses = new Set([401, 403, 404, 429]);

export async function rollout(context: CommandContext, file: string, flags: RolloutFlags): Promise<void> {
  if (flags.wait < 1_000)
    throw cliErrors.badArgument({
      name: '--wait',
      value: `${String(flags.wait / 1_000)}s`,
      wanted: 'a second or more',
    });
  const groups = groupsOf(readTasks(file), flags.rounds);
  const failed = new AbortController();
  const signal = AbortSignal.any([context.signal, failed.signal]);
  // Each attempt in flight listens.
  setMaxListeners(0, signal);
  const queue = queueOf(groups, flags.attempts);
  const work = async () => {
    for (let next = queue.next(); next.done !== true && !signal.aborted; next = queue.next()) {
      const { group, number } = next.value;
      await tried(context, group, number, flags, signal);
      if (signal.aborted || group.done.length + group.broken.length < flags.attempts) continue;
      const isFirst = groups.every(({ done }) => done.length === 0);
      if (isFirst) throw cliErrors.environmentFailed({ task: group.task.line, why: group.broken[0] ?? '' });
      await settle(context, group, flags, signal);
    }
  };
  const workers = Array.from({ length: Math.min(flags.atOnce, groups.length * flags.attempts) }, () =>
    work().catch((error: unknown) => {
      failed.abort();
      throw error;
    }),
  );
  const ended = await Promise.allSettled(workers);
  for (const group of groups.filter(({ isTold, done }) => !isTold && done.length > 0))
    // Why it ends is said; what could not be told stands beside the group.
    await settle(context, group, flags, signal).catch(() => undefined);
  summarise(context, groups, flags.attempts);
  for (const one of ended) if (one.status === 'rejected') throw one.reason;
}

function readTasks(file: string): Task[] {
  let text: string;
  try {
    text = readFileSync(file, 'utf8');
  } catch (error) {
    throw cliErrors.badArgument({ name: 'tasks', value: file, wanted: 'a file that can be read' }, error);
  }
  const tasks = text
    .split('\n')
    .map((json, at) => ({ line: at + 1, json: json.trim() }))
    .filter(({ json }) => json !== '');
  if (tasks.length === 0)
    throw cliErrors.badArgument({ name: 'tasks', value: file, wanted: 'a file with a task a line' });
  for (const { line, json } of tasks) {
    try {
      JSON.parse(json);
    } catch (error) {
      const wanted = `one JSON value a line: line ${String(line)} is none`;
      throw cliErrors.badArgument({ name: 'tasks', value: file, wanted }, error);
    }
  }
  return tasks;
}

/** Names of their own: groups of an earlier run were rewarded among themselves. */
function groupsOf(tasks: readonly Task[], rounds: number): Group[] {
  const run = newId();
  return Array.from({ length: rounds }, (_, at) => at + 1).flatMap((round) =>
    tasks.map((task): Group => {
      const name = `${run}-${String(task.line)}-${String(round)}`;
      return { name, task, round, done: [], broken: [], late: 0, untold: 0, isTold: false };
    }),
  );
}

function* queueOf(groups: readonly Group[], attempts: number): Generator<{ group: Group; number: number }, void> {
  for (const group of groups) for (let number = 1; number <= attempts; number += 1) yield { group, number };
}

async function tried(
  context: CommandContext,
  group: Group,
  number: number,
  flags: RolloutFlags,
  signal: AbortSignal,
): Promise<void> {
  const at = { task: group.task.json, group: group.name, attempt: number };
  try {
    group.done.push(await attempt(context, at, flags, signal));
  } catch (error) {
    const { code, detail, message } = asBacktalkError(error);
    const status = code === 'refused' ? Number(detail['status']) : 0;
    if (code === 'unreachable' || endpointStatuses.has(status) || status >= 500) throw error;
    if (signal.aborted) return;
    group.broken.push(code === 'internal' && error instanceof Error ? error.message : message);
  }
}

/** Each outcome says how many there are, so that they are told once all are through: the session that was silent for longest first, since it alone may be over. */
async function settle(context: CommandContext, group: Group, flags: RolloutFlags, signal: AbortSignal): Promise<void> {
  if (group.isTold) return;
  group.isTold = true;
  const { done } = group;
  try {
    if (!flags.train) return;
    group.untold = done.length;
    for (const { session, score } of done.toSorted((a, b) => a.answeredMs - b.answeredMs)) {
      const outcome = { score, attempts: done.length - group.late };
      if (!(await isTold(context, session, outcome, signal))) group.late += 1;
      group.untold -= 1;
    }
  } finally {
    print(context.output, group, flags);
  }
}

/** False where its session is over already. */
async function isTold(
  context: CommandContext,
  session: string,
  outcome: object,
  signal: AbortSignal,
): Promise<boolean> {
  try {
    const path = `/sessions/${session}/outcome`;
    await patiently(() => askEndpoint(context, 'The outcome', 'POST', path, outcome), signal);
    return true;
  } catch (error) {
    const { code, detail } = asBacktalkError(error);
    if (code === 'refused' && detail['status'] === 409) return false;
    throw error;
  }
}

function print(output: Output, group: Group, { attempts, rounds }: Pick<RolloutFlags, 'attempts' | 'rounds'>): void {
  const { task, round, name, done, broken, late, untold } = group;
  output.value({ task: task.line, round, group: name, attempts: done, broken, late, untold });
  const inRound = rounds === 1 ? '' : `, round ${String(round)}`;
  const { through, mean } = figuresOf(done);
  const said = [
    `${String(through)} of ${String(attempts)} came through`,
    ...(done.length === 0 ? [] : [`mean score ${mean.toFixed(2)}`]),
    ...(broken.length === 0 ? [] : [`${String(broken.length)} broke: ${broken[0] ?? ''}`]),
    ...(late === 0 ? [] : [`${String(late)} outcomes came too late: their sessions had been silent for too long`]),
    ...(untold === 0 ? [] : [`${String(untold)} outcomes could not be told`]),
  ];
  output.line(`task ${String(task.line)}${inRound}: ${said.join(' · ')} (${done.at(-1)?.version ?? 'no answer'})`);
}

interface Figures {
  readonly attempts: number;
  readonly through: number;
  /** NaN where there is none. */
  readonly mean: number;
}

function figuresOf(done: readonly Attempted[]): Figures {
  const through = done.filter(({ score }) => score > 0).length;
  return { attempts: done.length, through, mean: done.reduce((sum, { score }) => sum + score, 0) / done.length };
}

/** How versions fared, each by the attempts whose last answer it gave. */
function summarise({ output, signal }: CommandContext, groups: readonly Group[], attempts: number): void {
  const byVersion = new Map<string, Attempted[]>();
  for (const one of groups.flatMap(({ done }) => done)) {
    const same = byVersion.get(one.version);
    if (same === undefined) byVersion.set(one.version, [one]);
    else same.push(one);
  }
  const tried = groups.filter(({ done, broken }) => done.length + broken.length === attempts);
  const differ = tried.filter(({ done }) => new Set(done.map(({ score }) => score)).size > 1).length;
  const fared = [...byVersion].map(([version, done]) => ({ version, ...figuresOf(done) }));
  const interrupted = signal.aborted;
  output.value({ versions: fared, groups: groups.length, tried: tried.length, differ, interrupted });
  if (interrupted) process.exitCode ??= interruptedStatus;
  if (fared.length > 0) {
    const cells = ({ version, attempts: count, through, mean }: (typeof fared)[number]) => [
      version,
      String(count),
      String(through),
      mean.toFixed(2),
    ];
    output.line('');
    output.table(['version', 'attempts', 'came through', 'mean score'], fared.map(cells));
  }
  const cut = interrupted ? ', then it was interrupted' : '';
  output.line(`${String(tried.length)} of ${String(groups.length)} groups were tried${cut}.`);
  output.line(`Attempts fared differently in ${String(differ)} of them: npx backtalk versions shows what comes of it.`);
}
