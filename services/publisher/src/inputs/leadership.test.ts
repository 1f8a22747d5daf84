import { BacktalkError } from '@backtalk/kit';
import { until } from '@backtalk/kit/testing';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { SwapRig } from '../testing/swap-rig.js';
import type { SwapStep } from './swap.js';

let rig: SwapRig;

beforeEach(async () => {
  rig = await SwapRig.start();
});

afterEach(() => rig.stop());

describe('leadership', () => {
  const steps: SwapStep[] = [
    'candidate_staged',
    'load_set_written',
    'prepared',
    'measured',
    'stable_staged',
    'routes_written',
    'committed',
  ];

  it.each(steps)('another leader ends the same swap when a publisher dies at %s', async (fatalStep) => {
    const gateway = await rig.startGateway();
    await rig.startLoader();
    let died = false;
    const first = await rig.startPublisher({
      reached: (step) => {
        if (step !== fatalStep) return;
        died = true;
        throw new BacktalkError({ code: 'died', retry: 'stop', message: 'Died here.' });
      },
    });
    await rig.train(1);
    await until(() => died);
    await first.stop();
    await rig.startPublisher({}, { BACKTALK_INSTANCE: 'publisher-2' });
    await rig.stableIs(1);
    await until(() => gateway.commits.at(-1)?.stable === 'backtalk-v1');
    expect(await rig.story()).toEqual(['v0 STABLE', 'v1 CANDIDATE', 'v1 STABLE']);
    expect(rig.engine.counts.loads).toEqual(['backtalk-v1']);
    await rig.loadSetIs('backtalk-v1', 'backtalk-v0');
    expect(new Set(gateway.commits.map(({ stable }) => stable))).toEqual(new Set(['backtalk-v0', 'backtalk-v1']));
  });

  it('a version that a publisher burned as it lost its leadership answers no more', async () => {
    await rig.startLoader();
    await rig.startPublisher();
    await rig.release(1, 2);
    await rig.burnElsewhere(2);
    await rig.stableIs(1);
    await rig.loadSetIs('backtalk-v1', 'backtalk-v0');
  });

  it('leadership is held by one publisher, and goes to another when that one stops', async () => {
    await rig.startLoader();
    const first = await rig.startPublisher();
    const second = await rig.startPublisher({}, { BACKTALK_INSTANCE: 'publisher-2' });
    await expect(rig.rollBack(second)).rejects.toMatchObject({ code: 'not_leading' });
    await first.stop();
    await rig.train(1);
    await rig.stableIs(1);
    expect((await rig.story()).filter((line) => line.includes('CANDIDATE'))).toHaveLength(1);
    expect((await rig.story()).filter((line) => line.endsWith('STABLE'))).toHaveLength(2);
  });
});
