import { endpointClient } from '@backtalk/cli';
import { createEngineClient } from '@backtalk/dialects';
import { startFakeEngine, type FakeEngine } from '@backtalk/dialects/testing';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { klToBase, type MeasureOptions } from './measure.js';

let engine: FakeEngine;
let temperatures: unknown[];
let asking: MeasureOptions;

beforeEach(async () => {
  temperatures = [];
  engine = await startFakeEngine({
    heard: (body) => temperatures.push((body as { temperature?: number }).temperature),
  });
  const client = endpointClient(`${engine.url}/v1`, 'none');
  asking = { client, questions: ['Why?', 'How?'], samples: 3, maxTokens: 8, temperature: 0.8, parallel: 2 };
});
afterEach(async () => {
  await engine.stop();
});

async function drift() {
  const scoring = createEngineClient({ dialect: 'vllm', url: engine.url, apiKey: '' });
  try {
    return await klToBase(scoring, engine.baseModel, asking, engine.baseModel);
  } finally {
    await scoring.close();
  }
}

it('the answers that a KL rests on are sampled as they are scored, at temperature 1, one to each question', async () => {
  expect(await drift()).toEqual({ nats: 0, answers: 2 });
  expect(temperatures).toEqual([1, 1]);
});

it('an engine that gives no ids leaves no KL, in place of one of 0', async () => {
  engine.settings.faults.lie = 'no_ids';
  expect(await drift()).toBeUndefined();
});
