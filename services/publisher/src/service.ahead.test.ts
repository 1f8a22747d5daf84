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
  const askedOfBase = async (failing: number): Promise<() => number> => {
    let asked = 0;
    rig.engine.settings.heard = (body) => {
      const text = JSON.stringify(body);
      const isProbe = probeQuestions.some((question) => text.includes(JSON.stringify(question)));
      if (!isProbe || !text.includes(rig.engine.baseModel)) return;
      asked += 1;
      rig.engine.settings.faults = asked <= failing ? { failStatus: 500 } : {};
    };
    await rig.startLoader();
    await rig.startPublisher();
    return () => asked;
  };

  it('what a candidate is compared with answers before there is one, and is asked no more then', async () => {
    const asked = await askedOfBase(0);
    await until(() => asked() === 12);
    await rig.release(1);
    expect(asked()).toBe(12);
  });

  it('what a candidate is compared with is asked again where its engine failed', async () => {
    const asked = await askedOfBase(4);
    // The first four at once have failed.
    await until(() => asked() === 4 + 12);
    await rig.release(1);
    expect(asked()).toBe(4 + 12);
  });
});
