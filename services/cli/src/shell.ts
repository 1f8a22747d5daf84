// How every command starts and ends. In: words of the command line and the environment. Out: one line and an exit status for
// what fails, 0 for what succeeds. It finds the installation that a command is about; what a command does is in its own file.
import { Command, InvalidArgumentError } from 'commander';
import { asBacktalkError, isPolicyName, readConfig } from '@backtalk/kit';
import { cliSettings } from './config.js';
import { findConnection, type Connection, type NamedInstallation } from './connection.js';
import { exitStatusOf, pathRefusal } from './errors.js';
import { createOutput, type Output } from './output.js';

/** What every command is given. */
export interface CommandContext {
  readonly output: Output;
  readonly connection: Connection;
  readonly apiKey: string;
  /** Ctrl-C. */
  readonly signal: AbortSignal;
}

export type Run = (action: (context: CommandContext) => Promise<void>) => Promise<void>;

interface SharedFlags extends NamedInstallation {
  readonly json?: boolean;
}

export interface Shell {
  readonly program: Command;
  /** Runs an action on the installation that the flags or the environment name. */
  readonly run: Run;
  /** Runs work that finds the installation by itself. */
  readonly attempt: (work: (output: Output, flags: SharedFlags) => Promise<void>) => Promise<void>;
}

export function createShell(name: string, description: string, signal: AbortSignal): Shell {
  const program = new Command(name)
    .description(description)
    .option('--json', 'print JSON, one value a line')
    .option('--data <dir>', 'folder of the running machine (default: .backtalk)')
    .option('--policy <name>', 'which of several policies it is about (default: the first)')
    .configureHelp({ showGlobalOptions: true })
    .showHelpAfterError('(--help shows what there is)')
    .exitOverride((error) => {
      process.exit(error.exitCode === 0 ? 0 : 2);
    });
  const attempt: Shell['attempt'] = async (work) => {
    const flags = program.opts<SharedFlags>();
    const output = createOutput(flags.json === true);
    try {
      await work(output, flags);
    } catch (error) {
      const known = pathRefusal(error) ?? asBacktalkError(error);
      const words = known.code === 'internal' && error instanceof Error ? error.message : known.message;
      output.value({ error: { code: known.code, message: words } });
      output.complain(words);
      process.exitCode ??= exitStatusOf(known.code);
    }
  };
  const run: Run = (action) =>
    attempt(async (output, flags) => {
      const { apiKey, data } = readConfig(cliSettings);
      await action({ output, signal, apiKey, connection: findConnection(flags, data) });
    });
  return { program, run, attempt };
}

/** The command of a group where none is named; a word that is none of its commands is refused as one. */
export function listing(group: Command): Command {
  const list = group.command('list', { isDefault: true }).allowExcessArguments();
  return list.hook('preAction', () => {
    const [word] = list.args;
    const there = group.commands.map((one) => one.name()).join(', ');
    if (word !== undefined) group.error(`error: unknown command '${group.name()} ${word}': there is ${there}`);
  });
}

/** An option's value as a whole number. */
export function whole(lowest: number, highest = Number.MAX_SAFE_INTEGER): (text: string) => number {
  return (text) => {
    const value = Number(text);
    const isInRange = Number.isSafeInteger(value) && value >= lowest && value <= highest;
    const to = highest === Number.MAX_SAFE_INTEGER ? '' : ` to ${String(highest)}`;
    if (!isInRange) throw new InvalidArgumentError(`A whole number from ${String(lowest)}${to} is needed.`);
    return value;
  };
}

const unitMs: Readonly<Record<string, number>> = { s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 };

/** An option's value as an age, in milliseconds. */
export function age(text: string): number {
  const [, amount = '', unit = ''] = /^(\d{1,6})([smhd])$/.exec(text) ?? [];
  const ms = Number(amount) * (unitMs[unit] ?? Number.NaN);
  if (!Number.isFinite(ms)) throw new InvalidArgumentError('An age such as 30d, 12h, 30m or 45s is needed.');
  return ms;
}

const unitBytes: Readonly<Record<string, number>> = { MB: 1e6, GB: 1e9, TB: 1e12 };

/** An option's value as a size, in bytes. */
export function size(text: string): number {
  const [, amount = '', unit = ''] = /^(\d+(?:\.\d+)?)\s*([MGT]B)$/i.exec(text.trim()) ?? [];
  const bytes = Number(amount) * (unitBytes[unit.toUpperCase()] ?? Number.NaN);
  if (!(bytes > 0)) throw new InvalidArgumentError('A size such as 24GB is needed.');
  return bytes;
}

/** An option's value as the name of a tenant or a person: any, but not none. */
export function name(text: string): string {
  if (text.trim() === '') throw new InvalidArgumentError('A name is needed.');
  return text;
}

export function words(text: string): string {
  if (text.trim() === '') throw new InvalidArgumentError('Words are needed.');
  return text;
}

/** An option's value as names with commas between. */
export function names(text: string): readonly string[] {
  const list = text.split(',').map((name) => name.trim());
  if (!list.every(isPolicyName)) throw new InvalidArgumentError('Names of policies are needed, with commas between.');
  return list;
}
