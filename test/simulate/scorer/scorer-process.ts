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

type ScorerChild = ChildProcessByStdio<Writable, Readable, Readable>;

class ScorerProcess {
  private readonly lines: AsyncIterator<string>;
  private lastWords = '';

  constructor(
    private readonly child: ScorerChild,
    private readonly rule: object,
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
  }

  /** Resolves when the embeddings are loaded. */
  async ready(): Promise<void> {
    await this.line(readyWithinMs);
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
    this.child.stdin.write(`${JSON.stringify(request)}\n`);
    const { groups, error } = reply.parse(JSON.parse(await this.line(answerWithinMs)));
    const found = groups?.[group]?.means;
    if (found === undefined) throw scorerErrors.scorerFailed({ why: error?.message ?? 'its answer has no scores' });
    return found;
  }

  private async line(withinMs: number): Promise<string> {
    const timer = new Promise<never>((_, reject) => {
      const handle = setTimeout(() => {
        reject(scorerErrors.scorerFailed({ why: `it said nothing for ${String(withinMs / 1000)} s` }));
      }, withinMs);
      handle.unref();
    });
    const next = await Promise.race([this.lines.next(), timer]);
    if (next.done === true) throw scorerErrors.scorerFailed({ why: this.lastWords || 'it ended' });
    return next.value;
  }
}

/** @param rule of the user's file: when an answer violates the wish */
export async function startScorer(rule: object): Promise<ScorerProcess> {
  const python = join(repositoryRoot(), '.venv', 'bin', 'python');
  const stdio = ['pipe', 'pipe', 'pipe'] as const;
  const scorer = new ScorerProcess(
    spawn(python, ['-m', 'scoring'], { cwd: join(repositoryRoot(), 'test'), stdio: [...stdio] }),
    rule,
  );
  await scorer.ready();
  return scorer;
}
