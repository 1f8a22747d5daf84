// Runs a fake engine as a process of its own: `--port N --model NAME --token-ms N --answer-tokens N --places N`.
// Its settings may be changed by `POST /fake/settings`, its counts are read by `GET /fake/counts`.
import { parseArgs } from 'node:util';
import { startFakeEngine } from './fake-engine.js';

const { values } = parseArgs({
  options: {
    port: { type: 'string', default: '0' },
    model: { type: 'string', default: 'smollm2-135m-instruct' },
    'token-ms': { type: 'string', default: '0' },
    'answer-tokens': { type: 'string', default: '12' },
    places: { type: 'string', default: '256' },
  },
});

const engine = await startFakeEngine({
  port: Number(values.port),
  baseModel: values.model,
  tokenMs: Number(values['token-ms']),
  answerTokens: Number(values['answer-tokens']),
  places: Number(values.places),
});
process.stdout.write(`${engine.url}\n`);
