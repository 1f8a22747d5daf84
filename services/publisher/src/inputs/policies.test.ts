// One publisher for several policies on one engine: each has a chain, a fence and a line of versions of its own.
import { until } from '@backtalk/kit/testing';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { Publisher } from '../service.js';
import { SwapRig } from '../testing/swap-rig.js';

const policies = ['ada', 'ben'];

let rig: SwapRig;
let publisher: Publisher;

beforeEach(async () => {
  rig = await SwapRig.start(policies);
  await rig.startLoader(rig.engine, 'loader-1', policies.join());
});

afterEach(() => rig.stop());

const start = async () => {
  publisher = await rig.startPublisher({}, { BACKTALK_POLICIES: policies.join() });
  for (const policy of policies) await rig.stableIs(0, policy);
};

describe('several policies', () => {
  it('each version is staged for its own policy, and a rollback of one leaves the other as it was', async () => {
    await start();
    await rig.train(1, { policy: 'ada' });
    await rig.stableIs(1, 'ada');
    await rig.train(1, { policy: 'ben' });
    await rig.stableIs(1, 'ben');
    expect(rig.engine.adapters.names.toSorted()).toEqual(['ada-v1', 'ben-v1']);
    const { routes, fence } = (await rig.routes('ben')) ?? {};
    expect(await rig.rollBack(publisher, 'worse', 'ada')).toMatchObject({ from: 'ada-v1', to: 'ada-v0' });
    expect(await rig.routes('ada')).toMatchObject({ stable: 'ada-v0' });
    expect(await rig.routes('ben')).toMatchObject({ stable: 'ben-v1', routes, fence });
    expect(await rig.loadSet('ben')).toContain('ben-v1');
    await expect(rig.rollBack(publisher, 'worse', 'eve')).rejects.toMatchObject({ code: 'policy_unknown' });
  });

  it('a version stays for a gateway that has not followed its own policy yet, whatever it follows of another', async () => {
    const gateway = await rig.startGateway();
    await start();
    await rig.train(1, { policy: 'ada' });
    await rig.stableIs(1, 'ada');
    gateway.behind = 'ada';
    for (const number of [2, 3]) {
      await rig.train(number, { policy: 'ada' });
      await rig.stableIs(number, 'ada');
    }
    await rig.train(1, { policy: 'ben' });
    await rig.stableIs(1, 'ben');
    // Ben's fence is the newest of all: upkeep has looked at it once ben's routes are there and the engine was asked again.
    const reports = gateway.reports;
    await until(() => gateway.reports > reports + 4, { what: 'The upkeep of both policies' });
    expect(rig.engine.adapters.names).toContain('ada-v1');
    gateway.behind = '';
    await until(() => !rig.engine.adapters.names.includes('ada-v1'), { what: 'The old version to go' });
  });
});
