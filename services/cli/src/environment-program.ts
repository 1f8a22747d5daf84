// One environment at work: a program that is given a task, then each answer of an agent, and that says what the agent sees next, or how well
// it did. In: lines of JSON on its standard input. Out: lines of JSON on its standard output; what it writes to standard error says why it
// broke. It is a process group of its own, which ends with the attempt, and with this process, however that ends.
import { spawn, type ChildProcessByStdio } from 'node:child_process';
import type { Readable, Writable } from 'node:stream';
import { foreignEnvironment, systemClock, within } from '@backtalk/kit';
import { z } from 'zod';
import { cliErrors } from './errors.js';

const heardSchema = z.union([
  z.object({ score: z.number().min(-1).max(1) }),
  z.object({
    messages: z.array(z.looseObject({ role: z.string() })).min(1),
    tools: z.array(z.looseObject({})).nullish(),
  }),
]);
export type Heard = z.infer<typeof heardSchema>;

const lineBytesMax = 16 * 1024 * 1024;
const shownCharsMax = 200;
/** After its score, to put in order what it began. */
const endsWithinMs = 2_000;
/** After SIGTERM; a command that is terminated itself has a second. */
const stopsWithinMs = 400;

/** Leaders of groups that may be alive. */
const groups = new Set<number>();
process.on('exit', () => {
  for (const pid of groups) signalGroup(pid, 'SIGKILL');
});

export class EnvironmentProgram {
  private readonly child: ChildProcessByStdio<Writable, Readable, Readable>;
  private readonly lines: AsyncIterator<string>;
  private readonly exited: Promise<string>;
  private readonly aborted: Promise<never>;
  private forgetSignal: () => void = () => undefined;
  private complaint = '';

  /** @param command as a shell takes it */
  constructor(
    command: string,
    private readonly waitMs: number,
    signal: AbortSignal,
  ) {
    const options = { shell: true, detached: true, env: foreignEnvironment() };
    this.child = spawn(command, { ...options, stdio: ['pipe', 'pipe', 'pipe'] });
    this.exited = new Promise((resolve) => {
      this.child.once('error', ({ message }) => {
        resolve(message);
      });
      this.child.once('exit', (status, by) => {
        resolve(String(status ?? by));
      });
    });
    const { pid } = this.child;
    // Where no process could be made there may be no pipes either.
    if (pid === undefined)
      throw cliErrors.environmentBroke({ why: 'The machine starts no more processes (--at-once).' });
    groups.add(pid);
    // A program that has ended takes no more; what it did not say is then missed.
    this.child.stdin.on('error', () => undefined);
    this.child.stderr.setEncoding('utf8').on('data', (text: string) => {
      this.complaint = (this.complaint + text).slice(-4 * shownCharsMax);
    });
    this.lines = linesOf(this.child.stdout);
    this.aborted = new Promise<never>((_resolve, reject) => {
      const abort = () => {
        reject(cliErrors.environmentBroke({ why: 'The command was ended.' }));
      };
      if (signal.aborted) abort();
      signal.addEventListener('abort', abort);
      this.forgetSignal = () => {
        signal.removeEventListener('abort', abort);
      };
    });
    this.aborted.catch(() => undefined);
  }

  /** @param line one JSON value */
  tell(line: string): void {
    this.child.stdin.write(`${line}\n`);
  }

  async hear(): Promise<Heard> {
    const line = await this.nextLine();
    const read = heardSchema.safeParse(jsonIn(line));
    if (read.success) return read.data;
    throw cliErrors.environmentBroke({ why: `It said neither messages nor a score from -1 to 1: ${clipped(line)}` });
  }

  /** @param isOver it has given its score, and may end by itself */
  async stop(isOver: boolean): Promise<void> {
    this.child.stdin.end();
    const { pid } = this.child;
    const hasEnded = async (ms: number) =>
      (await within(
        systemClock,
        ms,
        Promise.race([this.exited, this.aborted]).catch(() => undefined),
      )) !== undefined;
    if (pid !== undefined && !(isOver && (await hasEnded(endsWithinMs)))) {
      signalGroup(pid, 'SIGTERM');
      await within(systemClock, stopsWithinMs, this.exited);
    }
    this.forgetSignal();
    if (pid !== undefined) {
      signalGroup(pid, 'SIGKILL');
      groups.delete(pid);
    }
    // What has left the group may hold them open.
    for (const stream of [this.child.stdin, this.child.stdout, this.child.stderr]) stream.destroy();
  }

  private async nextLine(): Promise<string> {
    const next = await within(systemClock, this.waitMs, Promise.race([this.lines.next(), this.aborted]));
    if (next === undefined)
      throw cliErrors.environmentBroke({ why: `It said nothing for ${String(this.waitMs / 1_000)} s.` });
    if (next.done !== true) return next.value;
    const status = await within(systemClock, stopsWithinMs, this.exited);
    const how = status === undefined ? 'It closed its output' : `It ended with ${status}`;
    const said = this.complaint.trim().split('\n').at(-1) ?? '';
    const why = said === '' ? '' : `: ${clipped(said)}`;
    throw cliErrors.environmentBroke({ why: `${how} before it gave a score${why}` });
  }
}

function signalGroup(pid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(-pid, signal);
  } catch {
    // All of it has ended.
  }
}

async function* linesOf(stream: Readable): AsyncGenerator<string> {
  let rest = '';
  for await (const text of stream.setEncoding('utf8') as AsyncIterable<string>) {
    const lines = (rest + text).split('\n');
    rest = lines.pop() ?? '';
    if (Buffer.byteLength(rest) > lineBytesMax)
      throw cliErrors.environmentBroke({ why: `A line of it is longer than ${String(lineBytesMax)} bytes.` });
    yield* lines.filter((line) => line.trim() !== '');
  }
  if (rest.trim() !== '') yield rest;
}

function jsonIn(line: string): unknown {
  try {
    return JSON.parse(line);
  } catch {
    return undefined;
  }
}

function clipped(text: string): string {
  return text.length > shownCharsMax ? `${text.slice(0, shownCharsMax)}…` : text;
}
