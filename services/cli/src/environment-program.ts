// One environment at work: a program that is given a task, then each answer of an agent, and that says what the agent sees next, or how well
// it did. In: lines of JSON on its standard input. Out: lines of JSON on its standard output; what it writes to standard error says why it
// broke. It is a process group of its own, and none of it is left when the attempt is over.
import { spawn, type ChildProcessByStdio } from 'node:child_process';
import { once } from 'node:events';
import type { Readable, Writable } from 'node:stream';
import { systemClock, within } from '@backtalk/kit';
import { z } from 'zod';
import { cliErrors } from './errors.js';

const heardSchema = z.union([
  z.strictObject({ score: z.number().min(-1).max(1) }),
  z.strictObject({
    messages: z.array(z.looseObject({ role: z.string() })).min(1),
    tools: z.array(z.looseObject({})).optional(),
  }),
]);
export type Heard = z.infer<typeof heardSchema>;

const lineBytesMax = 16 * 1024 * 1024;
const shownCharsMax = 200;
const stopWithinMs = 2_000;

export class EnvironmentProgram {
  private readonly child: ChildProcessByStdio<Writable, Readable, Readable>;
  private readonly lines: AsyncIterator<string>;
  private readonly ended: Promise<unknown>;
  private readonly aborted: Promise<never>;
  private forgetSignal: () => void = () => undefined;
  private complaint = '';

  /** @param command as a shell takes it */
  constructor(
    command: string,
    private readonly waitMs: number,
    signal: AbortSignal,
  ) {
    this.child = spawn(command, { shell: true, detached: true, stdio: ['pipe', 'pipe', 'pipe'] });
    // A program that has ended takes no more; what it did not say is then missed.
    this.child.stdin.on('error', () => undefined);
    this.child.stderr.setEncoding('utf8').on('data', (text: string) => {
      this.complaint = (this.complaint + text).slice(-4 * shownCharsMax);
    });
    this.ended = once(this.child, 'close').catch(() => undefined);
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

  tell(message: object): void {
    this.child.stdin.write(`${JSON.stringify(message)}\n`);
  }

  async hear(): Promise<Heard> {
    const line = await this.nextLine();
    const read = heardSchema.safeParse(jsonIn(line));
    if (read.success) return read.data;
    throw cliErrors.environmentBroke({ why: `It said neither messages nor a score from -1 to 1: ${clipped(line)}` });
  }

  async stop(): Promise<void> {
    this.forgetSignal();
    this.child.stdin.end();
    this.kill('SIGTERM');
    if (
      (await within(
        systemClock,
        stopWithinMs,
        this.ended.then(() => true),
      )) === true
    )
      return;
    this.kill('SIGKILL');
    await this.ended;
  }

  private async nextLine(): Promise<string> {
    const next = await within(systemClock, this.waitMs, Promise.race([this.lines.next(), this.aborted]));
    if (next === undefined)
      throw cliErrors.environmentBroke({ why: `It said nothing for ${String(this.waitMs / 1_000)} s.` });
    if (next.done !== true) return next.value;
    await this.ended;
    const status = this.child.exitCode ?? this.child.signalCode;
    const said = this.complaint.trim().split('\n').at(-1) ?? '';
    const why = said === '' ? '' : `: ${clipped(said)}`;
    throw cliErrors.environmentBroke({ why: `It ended with ${String(status)} before it gave a score${why}` });
  }

  private kill(signal: NodeJS.Signals): void {
    const { pid } = this.child;
    if (pid === undefined) return;
    try {
      process.kill(-pid, signal);
    } catch {
      // All of it has ended.
    }
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
