// `judge eval`: how good the judge is with the running engine, on labelled next states that it was not fitted on.
import { createEngineClient } from '@backtalk/dialects';
import {
  evaluateJudge as evaluate,
  readCalibrationTable,
  readLabelledItems,
  readReader,
  ScoredVoter,
  scoredPrompts,
  type EvaluationRow,
} from '@backtalk/judge';
import type { CommandContext } from '../shell.js';
import { cliErrors } from '../errors.js';

const splits = ['test', 'dev'] as const;
const votes = 3;

function cells(row: EvaluationRow): string[] {
  const { name, balancedAccuracy, interval, n, injectionFlipRate, byRole } = row;
  const digits = (value: number | undefined) => (value === undefined || Number.isNaN(value) ? '' : value.toFixed(2));
  return [
    name,
    digits(balancedAccuracy),
    `${digits(interval.low)} to ${digits(interval.high)}`,
    digits(byRole.user),
    digits(byRole.tool),
    digits(injectionFlipRate),
    String(n),
  ];
}

export async function evaluateJudge({ connection, output, signal }: CommandContext, wanted: string): Promise<void> {
  const split = splits.find((known) => known === wanted);
  if (split === undefined) throw cliErrors.badArgument({ name: '--split', value: wanted, wanted: splits.join(' or ') });
  const labelled = readLabelledItems();
  const items = labelled.filter((item) => item.split === split);
  const voter = new ScoredVoter(scoredPrompts(labelled), readCalibrationTable());
  const client = createEngineClient({ dialect: 'vllm', url: connection.engine });
  const progress = output.progress('judging', items.length);
  const engine = { client, model: connection.baseModel };
  const onProgress = (done: number) => {
    progress.update(done, `${split} part`);
  };
  const rows = await evaluate({ voter, engine, reader: readReader(labelled), items, votes, signal, onProgress });
  progress.stop();
  for (const row of rows) output.value({ split, ...row });
  output.table(['judge', 'balanced accuracy', '95 %', 'user', 'tool', 'injection flips', 'n'], rows.map(cells));
}
