import { createEngineClient } from '@backtalk/dialects';
import { startFakeEngine, type FakeEngine } from '@backtalk/dialects/testing';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Material } from '../domain/material.js';
import { scoredPrompts } from './labelled-set.js';
import { ScoredVoter } from './scored-voter.js';
import type { JudgeEngine } from './voter.js';

const prompts = scoredPrompts();
const material: Material = {
  place: { turn: 't', tenant: 'a', user: 'u', policy: 'p', session: 's' },
  conversation: [],
  question: 'Is the build green?',
  answer: 'It is.',
  thoughts: '',
  version: '',
  next: { role: 'user', text: 'No, red.', userText: 'No, red.', toolResults: [] },
};
const bias = { satisfied: 0, correction: 0 };
const wordings = Object.fromEntries([...prompts.wordings.user, ...prompts.wordings.tool].map(({ id }) => [id, bias]));
const options = { deadlineMs: 10_000 };

let fake: FakeEngine;
let engine: JudgeEngine;

beforeAll(async () => {
  fake = await startFakeEngine();
  engine = { client: createEngineClient({ dialect: 'vllm', url: fake.url }), model: fake.baseModel };
});
afterAll(async () => {
  await engine.client.close();
  await fake.stop();
});

function voterFor(model: string): ScoredVoter {
  const entry = { model, promptDigest: prompts.digest, low: -0.1, high: 0.1, wordings, fittedOn: 1 };
  return new ScoredVoter(prompts, { entries: [entry] });
}

describe('a scored vote', () => {
  it('casts the same vote each time, another one for another wording, and names the thresholds', async () => {
    const voter = voterFor(fake.baseModel);
    const first = await voter.cast(engine, material, 0, options);
    expect(await voter.cast(engine, material, 0, options)).toEqual(first);
    expect(first).toMatchObject({ valid: true, hint: '' });
    expect(await voter.cast(engine, material, 1, options)).not.toEqual(first);
    expect(voter.facts(fake.baseModel)).toEqual({ promptDigest: prompts.digest, low: -0.1, high: 0.1 });
  });

  it('casts a null vote for a model without thresholds', async () => {
    const voter = voterFor('another-model');
    expect(await voter.cast(engine, material, 0, options)).toMatchObject({ valid: false, reason: 'uncalibrated' });
  });
});
