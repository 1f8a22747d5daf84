// `node test/dist/judge/evaluate-main.js --split test|dev`, or `--file F.jsonl [--backend words|free]`, and for free votes `--engine URL
// --model NAME --votes N`: what `backtalk judge eval` runs. It writes JSON lines: `{ done, all }` as it goes on, then one `{ row }` or `{ report }` for each way
// of judging, or `{ refused }`.
import { readFileSync } from 'node:fs';
import { parseArgs } from 'node:util';
import { createEngineClient } from '@backtalk/dialects';
import { isBacktalkError, readConfig, setting } from '@backtalk/kit';
import { FreeVoter, readReader } from '@backtalk/judge';
import { evaluateJudge } from './evaluate.js';
import { evaluateTurns } from './evaluate-turns.js';
import { readItems } from './items.js';
import { readLabelledTurns, type LabelledTurn } from './labelled-lines.js';

const { values: asked } = parseArgs({
  options: {
    engine: { type: 'string', default: 'http://127.0.0.1:30030' },
    model: { type: 'string', default: 'smollm2-135m-wishes' },
    split: { type: 'string', default: 'test' },
    file: { type: 'string' },
    votes: { type: 'string', default: '3' },
    backend: { type: 'string', default: 'words' },
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
const onProgress = (done: number, all: number) => write({ done, all });
if (asked.file === undefined) evaluateSplit();
else await evaluateFile(asked.file);
await client.close();

function evaluateSplit(): void {
  const items = readItems().filter(({ split }) => split === asked.split);
  for (const row of evaluateJudge({ reader: readReader(), items, onProgress })) write({ row });
}

async function evaluateFile(file: string): Promise<void> {
  const turns = read(file);
  if (turns === undefined) return;
  const engine = { client, model: asked.model };
  const free = { voting: { voter: new FreeVoter(), engine, votes: Number(asked.votes) }, reader: undefined };
  const words = { voting: undefined, reader: readReader() };
  const reports = await evaluateTurns({ turns, onProgress, ...(asked.backend === 'free' ? free : words) });
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
