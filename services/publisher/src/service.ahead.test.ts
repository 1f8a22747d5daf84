import { until } from '@backtalk/kit/testing';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { probeQuestions } from './domain/behaviour.js';
import { SwapRig } from './testing/swap-rig.js';

let rig: SwapRig;

beforeEach(async () => {
  rig = await SwapRig.start();
});

afterEach(() => rig.stop());

describe('the gate', () => {
  it('what a candidate is compared with answers before there is one, and is asked no more then', async () => {
    let asked = 0;
    rig.engine.settings.heard = (body) => {
      const text = JSON.stringify(body);
      const isProbe = probeQuestions.some((question) => text.includes(JSON.stringify(question)));
      if (!isProbe || !text.includes(rig.engine.baseModel)) return;
      asked += 1;
    };
    await rig.startLoader();
    await rig.startPublisher();
    await until(() => asked === 12);
    await rig.release(1);
    expect(asked).toBe(12);
  });
});
