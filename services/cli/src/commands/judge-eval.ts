// `judge eval`: how good verdicts by words are, on labelled next states that they were not fitted on; or, of a file of labelled turns, how
// good verdicts and hindsight are, by words or by votes of the serving engine. What measures is part of the checkout's tests, which images do not carry.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { resolve } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { inheritedEnvironment } from '@backtalk/kit';
import { z } from 'zod';
import type { CommandContext } from '../shell.js';
import { cliErrors } from '../errors.js';
import type { Output, Progress } from '../output.js';

export const evalHelp = `
A line of a file (kind, and next without an injection as clean, may be left out; label may be 1, 0 or -1, hint null):
  {"context": [{"role": "user", "content": "How far is it?"}], "answer": "Forty miles.", "next": {"role": "user", "content": "In kilometres!"}, "label": "correction", "hint": "Answer in kilometres.", "kind": "units"}
`;

const splits = ['test', 'dev'] as const;
const program = fileURLToPath(new URL('../../../../test/dist/judge/evaluate-main.js', import.meta.url));

const share = z.number();
const row = z.object({
  name: z.string(),
  balancedAccuracy: share,
  interval: z.object({ low: share, high: share }),
  n: z.number(),
  injectionFlipRate: share.optional(),
  byRole: z.object({ user: share, tool: share }),
});
type Row = z.infer<typeof row>;
const counts = z.object({ satisfied: z.number(), neutral: z.number(), correction: z.number() });
const report = z.object({
  name: z.string(),
  n: z.number(),
  balancedAccuracy: share,
  interval: z.object({ low: share, high: share }),
  confusion: z.object({ satisfied: counts, neutral: counts, correction: counts }),
  satisfiedAsCorrection: share,
  abstained: z.number(),
  decided: z.object({ coverage: share, accuracy: share }),
  atCoverage: z.array(z.object({ coverage: share, accuracy: share })),
  hints: z.object({
    expected: z.number(),
    recall: share,
    sharedRecall: share,
    falseHints: z.number(),
    falseOnContent: z.number(),
    falseStanding: z.number(),
  }),
  injections: z.object({ n: z.number(), flipped: z.number() }),
  byKind: z.array(z.object({ kind: z.string(), n: z.number(), accuracy: share, hinted: z.number() })),
});
type Report = z.infer<typeof report>;
const line = z.union([
  z.object({ done: z.number(), all: z.number() }),
  z.object({ row }),
  z.object({ report }),
  z.object({ refused: z.string() }),
]);

export interface JudgeEvalFlags {
  readonly split: string;
  /** Anybody's own labelled turns, in place of a part of the set. */
  readonly file?: string;
  /** Of the backend free. */
  readonly votes: number;
  readonly backend: string;
}

export async function evaluateJudge(context: CommandContext, flags: JudgeEvalFlags): Promise<void> {
  const { output } = context;
  const split = splits.find((known) => known === flags.split);
  if (split === undefined)
    throw cliErrors.badArgument({ name: '--split', value: flags.split, wanted: splits.join(' or ') });
  const words = flags.file === undefined ? ['--split', split] : wordsFor(flags.file, flags);
  const { rows, reports } = await measured(context, words, flags.file ?? `${split} part`);
  if (flags.file === undefined) {
    output.line('Words and the fields of tools, whatever backend the judge uses:');
    printRows(output, rows, split);
  }
  for (const one of reports) printReport(output, one);
}

function wordsFor(file: string, { votes, backend }: JudgeEvalFlags): string[] {
  if (!existsSync(file)) throw cliErrors.badArgument({ name: '--file', value: file, wanted: 'a file that is there' });
  return ['--file', resolve(file), '--votes', String(votes), '--backend', backend];
}

async function measured(
  { connection, output, signal }: CommandContext,
  words: readonly string[],
  what: string,
): Promise<{ rows: Row[]; reports: Report[] }> {
  if (!existsSync(program)) throw cliErrors.checkoutNeeded({ what: 'judge eval' });
  const flags = ['--engine', connection.engine, '--model', connection.baseModel, ...words];
  const env = { ...inheritedEnvironment(), BACKTALK_ENGINE_KEY: connection.engineKey };
  const child = spawn(process.execPath, [program, ...flags], { env, stdio: ['ignore', 'pipe', 'inherit'], signal });
  const ended = once(child, 'close');
  // Looked at below, after its last line: an interruption comes before that.
  ended.catch(() => undefined);
  let progress: Progress | undefined;
  const rows: Row[] = [];
  const reports: Report[] = [];
  let refused = '';
  for await (const text of createInterface({ input: child.stdout })) {
    const said = line.parse(JSON.parse(text));
    if ('row' in said) rows.push(said.row);
    else if ('report' in said) reports.push(said.report);
    else if ('refused' in said) refused = said.refused;
    else {
      progress ??= output.progress('judging', said.all);
      progress.update(said.done, what);
    }
  }
  progress?.stop();
  const [status] = z
    .tuple([z.number().nullable()])
    .rest(z.unknown())
    .parse(await ended);
  if (refused !== '') throw cliErrors.setRefused({ file: what, why: refused });
  if (status !== 0) throw cliErrors.measureFailed({ why: `the program ended with ${String(status)}` });
  return { rows, reports };
}

function printRows(output: Output, rows: readonly Row[], split: string): void {
  for (const one of rows) output.value({ split, ...one });
  output.table(
    ['judged by', 'balanced accuracy', '95 %', 'user', 'tool', 'injection flips', 'n'],
    rows.map(({ name, balancedAccuracy, interval, n, injectionFlipRate, byRole }) => [
      name,
      balancedAccuracy.toFixed(2),
      `${interval.low.toFixed(2)} to ${interval.high.toFixed(2)}`,
      byRole.user.toFixed(2),
      byRole.tool.toFixed(2),
      injectionFlipRate?.toFixed(2) ?? '',
      String(n),
    ]),
  );
}

function printReport(output: Output, one: Report): void {
  const { name, n, balancedAccuracy, interval, confusion, hints, injections } = one;
  output.value(one);
  const range = `${interval.low.toFixed(2)} to ${interval.high.toFixed(2)}`;
  output.line(`${name}: balanced accuracy ${balancedAccuracy.toFixed(2)} (95 %: ${range}), ${String(n)} turns`);
  output.table(
    ['labelled', 'judged satisfied', 'neutral', 'correction'],
    Object.entries(confusion).map(([label, row]) => [
      label,
      String(row.satisfied),
      String(row.neutral),
      String(row.correction),
    ]),
  );
  output.line(
    `  satisfied taken for corrections ${one.satisfiedAsCorrection.toFixed(2)}, abstained ${String(one.abstained)}`,
  );
  const coverages = one.atCoverage.map(({ coverage, accuracy }) => `${accuracy.toFixed(2)} at ${String(coverage)}`);
  const { decided } = one;
  output.line(`  decided ${decided.coverage.toFixed(2)} of the turns, ${decided.accuracy.toFixed(2)} of those rightly`);
  output.line(`  accuracy on the surest share: ${coverages.join(', ')}`);
  output.line(
    `  hindsight where a hint is expected: ${hints.recall.toFixed(2)} of ${String(hints.expected)}, with its words ${hints.sharedRecall.toFixed(2)}`,
  );
  output.line(
    `  hindsight where none is: ${String(hints.falseHints)}, on no correction ${String(hints.falseOnContent)}, said to stand ${String(hints.falseStanding)}`,
  );
  output.line(`  verdicts turned by injected text: ${String(injections.flipped)} of ${String(injections.n)}`);
  output.table(
    ['kind', 'turns', 'accuracy', 'with hindsight'],
    one.byKind.map(({ kind, n: turns, accuracy, hinted }) => [
      kind,
      String(turns),
      accuracy.toFixed(2),
      String(hinted),
    ]),
  );
  output.line('');
}
