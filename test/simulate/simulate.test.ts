import { endpointClient, type Output } from '@backtalk/cli';
import { createEngineClient } from '@backtalk/dialects';
import { startFakeEngine } from '@backtalk/dialects/testing';
import { until } from '@backtalk/kit/testing';
import { expect, it } from 'vitest';
import { Simulation, type AnswerScorer } from './simulate.js';

const unasked = () => Promise.reject(new RangeError('Nothing was answered, so nothing is scored.'));
const nothing = () => undefined;
const output: Output = {
  json: true,
  line: nothing,
  piece: nothing,
  table: nothing,
  value: nothing,
  complain: nothing,
  progress: () => ({ update: nothing, stop: nothing }),
};
const scorer: AnswerScorer = { score: unasked, scoreCut: unasked, scoreShuffled: unasked };

it.each([
  ['measures', scorer],
  ['talks', undefined],
])('a simulation that is interrupted while it %s ends at once, with what it has', async (_, own) => {
  const engine = await startFakeEngine({ faults: { hang: true } });
  const stop = new AbortController();
  const simulation = new Simulation({
    client: endpointClient(`${engine.url}/v1`, 'none'),
    engine: createEngineClient({ dialect: 'vllm', url: engine.url, apiKey: '' }),
    engineBase: engine.baseModel,
    policy: 'backtalk',
    user: { question: () => 'Why?', react: async () => ({ kind: 'leave' }) },
    scorer: own,
    hint: 'Be brief.',
    sessions: 1,
    untilVersion: undefined,
    parallelSessions: 1,
    maxTokens: 8,
    repliesMax: 1,
    measure: { questions: ['Why?'], samples: 1, maxTokens: 8, temperature: 1, parallel: 1 },
    klAnswers: 1,
    rest: async () => undefined,
    output,
    signal: stop.signal,
  });
  const ended = simulation.run();
  await until(() => engine.counts.requests > 0);
  stop.abort();
  expect(await ended).toMatchObject({ rows: [], counts: { sessions: 0 } });
  await engine.stop();
});
