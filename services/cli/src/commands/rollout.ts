// `rollout`: the model tries tasks, each several times, in environments that check what it does: programs of the user's, of which some are at
// work at once. In: a file of tasks, a program. Out: how each attempt went, told to the gateway, so that attempts at one task are rewarded
// beside each other; and how versions fared.
import { setMaxListeners } from 'node:events';
import { readFileSync } from 'node:fs';
import { asBacktalkError, newId } from '@backtalk/kit';
import { attempt, type AttemptAt, type Attempted, type AttemptSettings } from '../attempting.js';
import { askEndpoint } from '../endpoint.js';
import { cliErrors } from '../errors.js';
import type { Output } from '../output.js';
import type { CommandContext } from '../shell.js';

export interface RolloutFlags extends AttemptSettings {
  /** At each task. */
  readonly attempts: number;
  readonly rounds: number;
  readonly atOnce: number;
}

/** Attempts that are rewarded beside each other. */
interface Group {
  readonly name: string;
  /** Line of the file, from 1. */
  readonly line: number;
  readonly round: number;
  readonly task: unknown;
  readonly done: Attempted[];
  /** Why attempts came to no score. */
  readonly broken: string[];
  late: number;
}

export async function rollout(context: CommandContext, file: string, flags: RolloutFlags): Promise<void> {
  const { output } = context;
  const groups = groupsOf(readTasks(file), flags.rounds);
  const queue = groups.flatMap((group) =>
    Array.from({ length: flags.attempts }, (_, at) => ({ group, attempt: at + 1 })),
  );
  const failed = new AbortController();
  const signal = AbortSignal.any([context.signal, failed.signal]);
  // Each attempt in flight listens.
  setMaxListeners(0, signal);
  const work = async () => {
    for (let next = queue.shift(); next !== undefined && !signal.aborted; next = queue.shift()) {
      const { group } = next;
      await tried(context, { ...next, task: group.task, group: group.name }, group, flags, signal);
      if (signal.aborted || group.done.length + group.broken.length < flags.attempts) continue;
      if (group.done.length === 0) throw cliErrors.environmentFailed({ task: group.line, why: group.broken[0] ?? '' });
      if (flags.train) await tell(context, group);
      print(output, group, flags);
    }
  };
  await Promise.all(
    Array.from({ length: flags.atOnce }, () =>
      work().catch((error: unknown) => {
        failed.abort();
        throw error;
      }),
    ),
  );
  summarise(output, groups, flags);
}

function readTasks(file: string): unknown[] {
  let text: string;
  try {
    text = readFileSync(file, 'utf8');
  } catch (error) {
    throw cliErrors.badArgument({ name: 'tasks', value: file, wanted: 'a file that can be read' }, error);
  }
  const lines = text.split('\n').filter((line) => line.trim() !== '');
  if (lines.length === 0)
    throw cliErrors.badArgument({ name: 'tasks', value: file, wanted: 'a file with a task a line' });
  return lines.map((line, at): unknown => {
    try {
      return JSON.parse(line);
    } catch (error) {
      const wanted = `one JSON value a line: task ${String(at + 1)} is none`;
      throw cliErrors.badArgument({ name: 'tasks', value: file, wanted }, error);
    }
  });
}

/** Names of their own: groups of an earlier run were rewarded among themselves. */
function groupsOf(tasks: readonly unknown[], rounds: number): Group[] {
  const run = newId();
  return Array.from({ length: rounds }, (_, at) => at + 1).flatMap((round) =>
    tasks.map((task, at) => {
      const line = at + 1;
      const name = `${run}-${String(line)}-${String(round)}`;
      return { name, line, round, task, done: [], broken: [], late: 0 };
    }),
  );
}

async function tried(
  context: CommandContext,
  at: AttemptAt,
  group: Group,
  flags: RolloutFlags,
  signal: AbortSignal,
): Promise<void> {
  try {
    group.done.push(await attempt(context, at, flags, signal));
  } catch (error) {
    const { code, message } = asBacktalkError(error);
    group.broken.push(code === 'internal' && error instanceof Error ? error.message : message);
  }
}

/** Once all are through, since each outcome says how many there are. */
async function tell(context: CommandContext, group: Group): Promise<void> {
  const attempts = group.done.length;
  await Promise.all(
    group.done.map(async ({ session, score }) => {
      try {
        await askEndpoint(context, 'The outcome', 'POST', `/sessions/${session}/outcome`, { score, attempts });
      } catch (error) {
        const refused = asBacktalkError(error);
        // Its session fell silent before the others of the group were through.
        if (refused.code !== 'refused' || refused.detail['status'] !== 409) throw error;
        group.late += 1;
      }
    }),
  );
}

function print(output: Output, group: Group, { attempts, rounds }: RolloutFlags): void {
  const { line, round, name, done, broken, late } = group;
  output.value({ task: line, round, group: name, attempts: done, broken, late });
  const inRound = rounds === 1 ? '' : `, round ${String(round)}`;
  const { through, mean } = figuresOf(done);
  const said = [`${String(through)} of ${String(attempts)} came through`, `mean score ${mean.toFixed(2)}`];
  output.line(
    `task ${String(line)}${inRound}: ${[...said, ...brokenOf(group)].join(' · ')} (${done.at(-1)?.version ?? ''})`,
  );
}

function brokenOf({ broken, late }: Group): string[] {
  return [
    ...(broken.length === 0 ? [] : [`${String(broken.length)} broke: ${broken[0] ?? ''}`]),
    ...(late === 0 ? [] : [`${String(late)} outcomes came too late: their sessions had been silent for too long`]),
  ];
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
function summarise(output: Output, groups: readonly Group[], { train }: RolloutFlags): void {
  const byVersion = new Map<string, Attempted[]>();
  for (const one of groups.flatMap(({ done }) => done))
    byVersion.set(one.version, [...(byVersion.get(one.version) ?? []), one]);
  const fared = [...byVersion].map(([version, done]) => ({ version, ...figuresOf(done) }));
  const alike = groups.filter(({ done }) => new Set(done.map(({ score }) => score)).size < 2).length;
  output.value({ versions: fared, groups: groups.length, alike });
  output.line('');
  output.table(
    ['version', 'attempts', 'came through', 'mean score'],
    fared.map(({ version, attempts, through, mean }) => [version, String(attempts), String(through), mean.toFixed(2)]),
  );
  if (!train) return;
  output.line(
    alike === groups.length
      ? 'Attempts at each task fared alike: nothing is learned from their outcomes.'
      : `In ${String(groups.length - alike)} of ${String(groups.length)} groups attempts fared differently: npx backtalk versions shows what comes of it.`,
  );
}
