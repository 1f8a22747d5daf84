// A server that a test runs as a process of its own, and that never outlives the test, however the test ends.
// In: a program and how to tell that it is ready. Out: a process to kill, stop and start again.
import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { testingErrors, until } from './until.js';

export interface ServerPlan {
  readonly program: string;
  readonly arguments: readonly string[];
  readonly ready: () => Promise<boolean>;
}

/** The shell waits on its input, which ends with this process: then it kills the server. */
const guard = '"$0" "$@" <&- & pid=$!; echo "pid $pid"; read _; kill -9 "$pid" 2>/dev/null; wait "$pid" 2>/dev/null';
const outputCharactersMax = 20_000;
/** A service of ours needs seconds on a machine that is busy with other tests. */
const readyWithinMs = 30_000;

export class ServerProcess {
  private shell: ChildProcess | undefined;
  private processId = 0;
  private output = '';

  constructor(private readonly plan: ServerPlan) {}

  get pid(): number {
    return this.processId;
  }

  async start(): Promise<void> {
    const { program, ready } = this.plan;
    const shell = spawn('sh', ['-c', guard, program, ...this.plan.arguments], { stdio: ['pipe', 'pipe', 'pipe'] });
    this.shell = shell;
    this.output = '';
    const keep = (chunk: Buffer) => {
      this.output = (this.output + chunk.toString()).slice(-outputCharactersMax);
    };
    shell.stdout.on('data', keep);
    shell.stderr.on('data', keep);
    try {
      this.processId = await until(() => this.readPid(), { what: `The start of ${program}` });
      await until(ready, { what: `The readiness of ${program}`, timeoutMs: readyWithinMs, everyMs: 20 });
    } catch (error) {
      await this.kill();
      throw testingErrors.serverFailed({ program, output: this.output }, error);
    }
  }

  /** As a crash does it: SIGKILL. */
  async kill(): Promise<void> {
    const shell = this.shell;
    if (shell === undefined) return;
    this.shell = undefined;
    const ended = once(shell, 'exit');
    shell.stdin?.end();
    await ended;
  }

  /** SIGSTOP and SIGCONT: connections stay open and get no answer. */
  pause(): void {
    process.kill(this.processId, 'SIGSTOP');
  }

  resume(): void {
    process.kill(this.processId, 'SIGCONT');
  }

  private readPid(): number | undefined {
    const [, digits] = /^pid (\d+)$/m.exec(this.output) ?? [];
    return digits === undefined ? undefined : Number(digits);
  }
}
