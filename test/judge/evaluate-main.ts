// `node test/dist/judge/evaluate-main.js --engine URL --model NAME --split test|dev`: what `backtalk judge eval` runs. It
// writes JSON lines: `{ done, all }` as it goes on, then one `{ row }` for each way of judging.
import { parseArgs } from 'node:util';
import { createEngineClient } from '@backtalk/dialects';
import { readConfig, setting } from '@backtalk/kit';
import { readCalibrationTable, readReader, ScoredVoter, scoredPrompts } from '@backtalk/judge';
import { evaluateJudge } from './evaluate.js';
import { votesCast } from './fit.js';
import { readItems } from './items.js';

const { values: asked } = parseArgs({
  options: {
    engine: { type: 'string', default: 'http://127.0.0.1:30030' },
    model: { type: 'string', default: 'smollm2-135m-instruct' },
    split: { type: 'string', default: 'test' },
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
const rows = await evaluateJudge({
  voter: new ScoredVoter(scoredPrompts(), readCalibrationTable()),
  engine: { client, model: asked.model },
  reader: readReader(),
  items: readItems().filter(({ split }) => split === asked.split),
  votes: votesCast,
  onProgress: (done, all) => write({ done, all }),
});
for (const row of rows) write({ row });
await client.close();

function write(line: unknown): void {
  process.stdout.write(`${JSON.stringify(line)}\n`);
}
