// `judge eval`: how good scored votes of the serving engine are, with the words beside them, on labelled next states that
// they were not fitted on. What measures is part of the checkout's tests, which images do not carry.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { inheritedEnvironment } from '@backtalk/kit';
import { z } from 'zod';
import type { CommandContext } from '../shell.js';
import { cliErrors } from '../errors.js';
import type { Progress } from '../output.js';

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
const line = z.union([z.object({ done: z.number(), all: z.number() }), z.object({ row })]);

export async function evaluateJudge({ connection, output, signal }: CommandContext, wanted: string): Promise<void> {
  const split = splits.find((known) => known === wanted);
  if (split === undefined) throw cliErrors.badArgument({ name: '--split', value: wanted, wanted: splits.join(' or ') });
  if (!existsSync(program)) throw cliErrors.checkoutNeeded({ what: 'judge eval' });
  const flags = ['--engine', connection.engine, '--model', connection.baseModel, '--split', split];
  const env = { ...inheritedEnvironment(), BACKTALK_ENGINE_KEY: connection.engineKey };
  const child = spawn(process.execPath, [program, ...flags], { env, stdio: ['ignore', 'pipe', 'inherit'], signal });
  const ended = once(child, 'close');
  let progress: Progress | undefined;
  const rows: Row[] = [];
  for await (const text of createInterface({ input: child.stdout })) {
    const said = line.parse(JSON.parse(text));
    if ('row' in said) {
      rows.push(said.row);
      continue;
    }
    progress ??= output.progress('judging', said.all);
    progress.update(said.done, `${split} part`);
  }
  progress?.stop();
  const [status] = z
    .tuple([z.number().nullable()])
    .rest(z.unknown())
    .parse(await ended);
  if (status !== 0) throw cliErrors.measureFailed({ why: `the program ended with ${String(status)}` });
  output.line(`Scored votes of ${connection.baseModel} at ${connection.engine}, whatever backend the judge uses:`);
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
