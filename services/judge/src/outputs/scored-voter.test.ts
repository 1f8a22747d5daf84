import { createEngineClient } from '@backtalk/dialects';
import { startFakeEngine, type FakeEngine } from '@backtalk/dialects/testing';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { materialOfItem } from '../domain/evaluation/material-of-item.js';
import { readLabelledItems, scoredPrompts } from './labelled-set.js';
import { measureLikelihoods } from './evaluation/measure.js';
import { ScoredVoter } from './scored-voter.js';
import type { JudgeEngine } from './voter.js';

const items = readLabelledItems();
const prompts = scoredPrompts(items);
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
  it('is the same each time, another one for another wording, and names its thresholds', async () => {
    const voter = voterFor(fake.baseModel);
    const [item] = items;
    const material = item === undefined ? undefined : materialOfItem(item);
    expect(material).toBeDefined();
    if (material === undefined) return;
    const first = await voter.cast(engine, material, 0, options);
    expect(await voter.cast(engine, material, 0, options)).toEqual(first);
    expect(first).toMatchObject({ valid: true, hint: '' });
    expect(await voter.cast(engine, material, 1, options)).not.toEqual(first);
    expect(voter.facts(fake.baseModel)).toEqual({ promptDigest: prompts.digest, low: -0.1, high: 0.1 });
  });

  it('is null for a model that no thresholds were fitted for', async () => {
    const voter = voterFor('another-model');
    for (const item of items.slice(0, 1))
      expect(await voter.cast(engine, materialOfItem(item), 0, options)).toMatchObject({
        valid: false,
        reason: 'uncalibrated',
      });
  });

  it('gives one likelihood for each item and wording of its role to fit thresholds on', async () => {
    const some = items.slice(0, 2);
    const { wordings: all } = prompts;
    const found = await measureLikelihoods({
      voter: voterFor('m'),
      engine,
      wordings: all,
      items: some,
      voteWaitMs: 10_000,
    });
    expect(found).toHaveLength(some.length * all.user.length);
    expect(found.every(({ found: { satisfied } }) => satisfied < 0)).toBe(true);
  });
});
