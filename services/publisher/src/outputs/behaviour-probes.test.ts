import { startFakeEngine, type FakeEngine } from '@backtalk/dialects/testing';
import { systemClock } from '@backtalk/kit';
import { EngineLease } from '@backtalk/proto/weights';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { BehaviourProbes } from './behaviour-probes.js';

const probes = 12;
let engine: FakeEngine;
let asked = 0;
let behaviour: BehaviourProbes;

beforeEach(async () => {
  engine = await startFakeEngine();
  asked = 0;
  engine.settings.heard = () => {
    asked += 1;
  };
  behaviour = new BehaviourProbes('', { probes, tokens: 8, deadlineMs: 20_000 }, systemClock);
});

afterEach(() => engine.stop());

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

  it('answers that an engine failed to give ahead are asked for again, and known then', async () => {
    engine.settings.faults = { failStatus: 500 };
    await expect(behaviour.askAhead(leased(), [engine.baseModel])).rejects.toMatchObject({ status: 502 });
    engine.settings.faults = {};
    await behaviour.askAhead(leased(), [engine.baseModel]);
    const before = asked;
    await behaviour.answersOf(leased(), [engine.baseModel]);
    expect(asked).toBe(before);
  });
});
