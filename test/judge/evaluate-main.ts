// `node test/dist/judge/evaluate-main.js --engine URL --model NAME --split test|dev`, or `--file F.jsonl [--votes N] [--backend NAME]`:
// what `backtalk judge eval` runs. It writes JSON lines: `{ done, all }` as it goes on, then one `{ row }` or `{ report }` for each way
// of judging, or `{ refused }`.
import { readFileSync } from 'node:fs';
import { parseArgs } from 'node:util';
import { createEngineClient } from '@backtalk/dialects';
import { isBacktalkError, readConfig, setting } from '@backtalk/kit';
import { FreeVoter, readCalibrationTable, readReader, ScoredVoter, scoredPrompts } from '@backtalk/judge';
import { evaluateJudge } from './evaluate.js';
import { evaluateTurns } from './evaluate-turns.js';
import { votesCast } from './fit.js';
import { readItems } from './items.js';
import { readLabelledTurns, type LabelledTurn } from './labelled-lines.js';

const { values: asked } = parseArgs({
  options: {
    engine: { type: 'string', default: 'http://127.0.0.1:30030' },
    model: { type: 'string', default: 'smollm2-135m-wishes' },
    split: { type: 'string', default: 'test' },
    file: { type: 'string' },
    votes: { type: 'string', default: String(votesCast) },
    backend: { type: 'string', default: 'scored' },
  },
});
const { engineKey } = readConfig({
  engineKey: setting.string('BACKTALK_ENGINE_KEY', {
    description: "The engine's API key; empty where it asks for none.",
    default: '',
    secret: true,
  }),
});
const client = createEngineClient({ dialect: 'vllm', url: asked.engine, apiKey: engineKey });
const engine = { client, model: asked.model };
const isScored = asked.backend === 'scored';
const voter = isScored ? new ScoredVoter(scoredPrompts(), readCalibrationTable()) : new FreeVoter();
const onProgress = (done: number, all: number) => write({ done, all });
if (asked.file === undefined) await evaluateSplit();
else await evaluateFile(asked.file);
await client.close();

async function evaluateSplit(): Promise<void> {
  const items = readItems().filter(({ split }) => split === asked.split);
  const rows = await evaluateJudge({ voter, engine, reader: readReader(), items, votes: votesCast, onProgress });
  for (const row of rows) write({ row });
}

async function evaluateFile(file: string): Promise<void> {
  const turns = read(file);
  if (turns === undefined) return;
  const votes = Number(asked.votes);
  const voting = votes === 0 ? undefined : { voter, engine, votes };
  const reports = await evaluateTurns({ turns, voting, reader: isScored ? readReader() : undefined, onProgress });
  for (const report of reports) write({ report });
}

function read(file: string): LabelledTurn[] | undefined {
  try {
    return readLabelledTurns(readFileSync(file, 'utf8'));
  } catch (error) {
    write({ refused: isBacktalkError(error) ? error.message : 'The file cannot be read.' });
    return undefined;
  }
}

function write(line: unknown): void {
  process.stdout.write(`${JSON.stringify(line)}\n`);
}
