import { writeFileSync } from 'node:fs';
import { startFakeEngine, type FakeEngine } from '@backtalk/dialects/testing';
import { systemClock } from '@backtalk/kit';
import { TemporaryDirectory } from '@backtalk/kit/testing';
import { EngineLease } from '@backtalk/proto/weights';
import { afterAll, afterEach, beforeEach, describe, expect, it } from 'vitest';
import { BehaviourProbes, type KnownAnswers } from './behaviour-probes.js';

const probes = 12;
const folder = new TemporaryDirectory('probes');
let engine: FakeEngine;
let asked = 0;
let behaviour: BehaviourProbes;

beforeEach(async () => {
  engine = await startFakeEngine();
  asked = 0;
  ofBases.clear();
  engine.settings.heard = () => {
    asked += 1;
  };
  behaviour = probesOfPolicy();
});

afterEach(() => engine.stop());
afterAll(() => {
  folder.remove();
});

const ofBases: KnownAnswers = new Map();
const probesOfPolicy = () => new BehaviourProbes('', { probes, tokens: 8, deadlineMs: 20_000 }, systemClock, ofBases);

const leased = () => ({
  instance: 'loader-1',
  address: '127.0.0.1:1',
  engine: EngineLease.fromPartial({ url: engine.url, dialect: 'vllm', baseModel: engine.baseModel }),
});

describe('answers to probe questions', () => {
  it('answers that are being asked for ahead are waited for, and not asked for twice', async () => {
    const ahead = behaviour.askAhead(leased(), [engine.baseModel]);
    const [answers] = await behaviour.answersOf(leased(), [engine.baseModel]);
    await ahead;
    expect(answers?.texts).toHaveLength(probes);
    expect(asked).toBe(probes);
  });

  it.each([
    [4, false],
    [40, true],
  ])('answers of %i tokens say whether they were cut off: %s', async (answerTokens, isCut) => {
    engine.settings.answerTokens = answerTokens;
    const [answers] = await behaviour.answersOf(leased(), [engine.baseModel]);
    expect(new Set(answers?.texts.map((text) => text.endsWith(' …')))).toEqual(new Set([isCut]));
  });

  it('answers that an engine failed to give ahead are asked for again, and known then', async () => {
    engine.settings.faults = { failStatus: 500 };
    await expect(behaviour.askAhead(leased(), [engine.baseModel])).rejects.toMatchObject({ status: 502 });
    engine.settings.faults = {};
    await behaviour.askAhead(leased(), [engine.baseModel]);
    const before = asked;
    await behaviour.answersOf(leased(), [engine.baseModel]);
    expect(asked).toBe(before);
  });

  it('a base answers once for all policies, and a version for its own', async () => {
    writeFileSync(folder.join('adapter_config.json'), '{"r": 8}');
    writeFileSync(folder.join('adapter_model.safetensors'), 'weights');
    await engine.adapters.load('own-v1', folder.path, engine.settings);
    const other = probesOfPolicy();
    const models = [engine.baseModel, 'own-v1'];
    await Promise.all([behaviour, other].map((one) => one.askAhead(leased(), models)));
    expect(asked).toBe(3 * probes);
    // What is compared with is another version now: the base's answers stay.
    await behaviour.answersOf(leased(), ['own-v1']);
    await Promise.all([behaviour, other].map((one) => one.answersOf(leased(), models)));
    expect(asked).toBe(3 * probes);
  });
});
