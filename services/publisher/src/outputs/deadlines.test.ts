// A candidate has so long, however many calls it takes: what is left after one call is all that the next one has.
import { fakePromptIds, startFakeEngine, type FakeEngine } from '@backtalk/dialects/testing';
import { systemClock, type BlobStore } from '@backtalk/kit';
import { EngineLease } from '@backtalk/proto/weights';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { CaseScorer } from './case-scores.js';
import type { LessonCases } from './lesson-cases.js';
import { ProbeScorer } from './probe-scores.js';

const allMs = 60_000;
let engine: FakeEngine;
let now: number;
const clock = { ...systemClock, now: () => now };

beforeEach(async () => {
  engine = await startFakeEngine();
  now = 0;
});

afterEach(() => engine.stop());

/** Its first call takes nearly all of the time, and no other is ever answered. */
function spend(): void {
  now = allMs - 100;
  engine.settings.faults = { hang: true };
}

const leased = () => ({
  instance: 'loader-1',
  address: '127.0.0.1:1',
  engine: EngineLease.fromPartial({ url: engine.url, dialect: 'vllm', baseModel: engine.baseModel }),
});

it('scores of a candidate and of its base together have no longer than the deadline', async () => {
  engine.settings.odds = () => {
    spend();
    return 0;
  };
  const scorer = new ProbeScorer({} as BlobStore, '', allMs, clock);
  const probe = { promptIds: [1, 2], answerIds: [3], logprobs: [-1], baseLogprobs: [], toldLogprobs: [] };
  await expect(scorer.score(leased(), engine.baseModel, [probe])).rejects.toMatchObject({ code: 'engine_timeout' });
});

it('a case that its engine does not answer in time is left to later versions, and holds up no decision', async () => {
  const messages = [{ role: 'user', content: 'How deep is a lake?' }];
  engine.settings.tokenizeHeard = spend;
  const cases = {
    forVersion: () => Promise.resolve([{ lesson: 'l', turn: 't', told: ['Be brief.'], untold: [] }]),
    request: () => Promise.resolve({ promptIds: fakePromptIds(messages), messages, tools: [], templateArguments: {} }),
  };
  const scorer = new CaseScorer('', cases as unknown as LessonCases, { tokens: 8, withinMs: allMs }, clock);
  const models = { base: engine.baseModel, candidate: engine.baseModel, serving: engine.baseModel };
  expect(await scorer.ask(leased(), models, 1)).toEqual([]);
});
