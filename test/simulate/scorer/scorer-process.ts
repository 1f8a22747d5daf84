// The scorer (test/scoring), a process in Python: answers go in as JSON lines, scores come out. One request at a time.
import { spawn, type ChildProcessByStdio } from 'node:child_process';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import type { Readable, Writable } from 'node:stream';
import { z } from 'zod';
import { repositoryRoot } from '@backtalk/kit/testing';
import { scorerErrors } from './errors.js';
import type { HeldOutAnswer, Scores } from './scores.js';

const means = z.object({
  obeys: z.number(),
  hit: z.number(),
  headline: z.number(),
  empty: z.number(),
  looping: z.number(),
  echo: z.number(),
});
const reply = z.object({
  id: z.number().nullable().optional(),
  groups: z.record(z.string(), z.object({ means })).optional(),
  error: z.object({ message: z.string() }).optional(),
});

const readyWithinMs = 60_000;
const answerWithinMs = 120_000;
const shuffleSeed = 1;
const folder = join(repositoryRoot(), 'test');
/** The scorer as it is; tests stand another program in for it. */
const usualCommand = [join(repositoryRoot(), '.venv', 'bin', 'python'), '-m', 'scoring'] as const;

type ScorerChild = ChildProcessByStdio<Writable, Readable, Readable>;

class ScorerProcess {
  private readonly lines: AsyncIterator<string>;
  private lastWords = '';

  constructor(
    private readonly child: ScorerChild,
    private readonly rule: object,
    private readonly signal: AbortSignal | undefined,
  ) {
    this.lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
    child.stderr.on('data', (chunk: Buffer) => {
      this.lastWords = chunk.toString().trim().split('\n').at(-1) ?? '';
    });
    // A scorer that cannot be started ends its lines; whoever waits for one then says so.
    child.on('error', (error) => {
      this.lastWords = error.message;
    });
    child.stdin.on('error', (error) => {
      this.lastWords = error.message;
    });
    // It may be in the middle of a long answer, which nobody waits for any more.
    signal?.addEventListener('abort', () => child.kill(), { once: true });
  }

  /** Resolves when the embeddings are loaded and the rule is read. */
  async ready(): Promise<void> {
    await this.line(readyWithinMs);
    const { error } = await this.answered({ op: 'check', rule: this.rule });
    if (error !== undefined) throw scorerErrors.ruleUnread({ why: error.message });
  }

  async score(answers: readonly HeldOutAnswer[]): Promise<Scores> {
    return this.ask('answers', { op: 'score', groups: { answers }, rule: this.rule });
  }

  async scoreCut(base: readonly HeldOutAnswer[]): Promise<Scores> {
    return this.ask('first_sentence', { op: 'compare', base, rule: this.rule });
  }

  async scoreShuffled(hinted: readonly HeldOutAnswer[]): Promise<Scores> {
    return this.ask('shuffled', { op: 'compare', hinted, seed: shuffleSeed, rule: this.rule });
  }

  async stop(): Promise<void> {
    if (this.child.exitCode !== null || this.child.signalCode !== null) return;
    const gone = new Promise((resolve) => this.child.once('exit', resolve));
    this.child.kill();
    await gone;
  }

  private async ask(group: string, request: object): Promise<Scores> {
    const { groups, error } = await this.answered(request);
    const found = groups?.[group]?.means;
    if (found === undefined) throw scorerErrors.scorerFailed({ why: error?.message ?? 'its answer has no scores' });
    return found;
  }

  private async answered(request: object): Promise<z.infer<typeof reply>> {
    this.child.stdin.write(`${JSON.stringify(request)}\n`);
    return reply.parse(JSON.parse(await this.line(answerWithinMs)));
  }

  private async line(withinMs: number): Promise<string> {
    const timer = new Promise<never>((_, reject) => {
      const handle = setTimeout(() => {
        reject(scorerErrors.scorerFailed({ why: `it said nothing for ${String(withinMs / 1000)} s` }));
      }, withinMs);
      handle.unref();
    });
    const next = await Promise.race([this.lines.next(), timer]);
    if (next.done === true) {
      this.signal?.throwIfAborted();
      throw scorerErrors.scorerFailed({ why: this.lastWords || 'it ended' });
    }
    return next.value;
  }
}

interface ScorerOptions {
  /** Ends it in the middle of a measurement. */
  readonly signal?: AbortSignal;
  readonly command?: readonly [string, ...string[]];
}

/** @param rule of the user's file: when an answer violates the wish; refused here where the scorer cannot read it */
export async function startScorer(
  rule: object,
  { signal, command = usualCommand }: ScorerOptions = {},
): Promise<ScorerProcess> {
  signal?.throwIfAborted();
  const [program, ...words] = command;
  const scorer = new ScorerProcess(
    spawn(program, words, { cwd: folder, stdio: ['pipe', 'pipe', 'pipe'] }),
    rule,
    signal,
  );
  try {
    await scorer.ready();
  } catch (error) {
    await scorer.stop();
    throw error;
  }
  return scorer;
}
