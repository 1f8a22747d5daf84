// The stand-in for an engine as a process: deterministic answers in vLLM's dialect, on the port that `npm start` would give
// the built-in engine. Its settings are changed by `POST /fake/settings` and its counts read at `GET /fake/counts`.
import { parseArgs } from 'node:util';
import { startFakeEngine } from '@backtalk/dialects/testing';
import { judgeReply } from './judge-reply.js';

const { values } = parseArgs({
  options: {
    port: { type: 'string', default: '0' },
    model: { type: 'string', default: 'smollm2-135m-wishes' },
    'first-token-ms': { type: 'string', default: '0' },
    'token-ms': { type: 'string', default: '2' },
    'answer-tokens': { type: 'string', default: '12' },
    places: { type: 'string', default: '256' },
    'dies-of': { type: 'string', default: '' },
  },
});

/** A prompt with these words ends the process, as one does that meets a fault of a kernel or the memory's end. */
const deadly = values['dies-of'];

const engine = await startFakeEngine({
  port: Number(values.port),
  baseModel: values.model,
  firstTokenMs: Number(values['first-token-ms']),
  tokenMs: Number(values['token-ms']),
  answerTokens: Number(values['answer-tokens']),
  places: Number(values.places),
  reply: judgeReply,
  heard: (body) => {
    if (deadly !== '' && JSON.stringify(body).includes(deadly)) process.kill(process.pid, 'SIGKILL');
  },
});
process.stdout.write(`${engine.url}\n`);
