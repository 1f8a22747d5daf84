// Three brokers, three copies of every stream: the leader of the turns is killed while people talk.
import { until } from '@backtalk/kit/testing';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { leaderOf, ownBroker } from '../loop/broker-cluster.js';
import { FailureRig } from './rig.js';

let rig: FailureRig;

beforeAll(async () => {
  rig = await FailureRig.start({ brokers: 3 });
});

afterAll(async () => {
  await rig?.stop();
});

async function leader(but = ''): Promise<string> {
  const broker = await rig.machine.broker();
  try {
    const found = async () => {
      const name = await leaderOf(broker, 'TURNS').catch(() => undefined);
      return name !== undefined && name !== '' && name !== but && name;
    };
    return await until(found, { what: 'A leader of the turns', timeoutMs: 60_000 });
  } finally {
    await broker.close();
  }
}

/** Kills the leader of the turns, waits until another member leads, and brings the killed one back. */
async function killLeader(): Promise<void> {
  const { cluster } = rig.machine;
  const killed = await leader();
  if (killed === ownBroker || cluster === undefined) {
    await rig.killed('nats');
    return;
  }
  const back = await cluster.kill(killed);
  await leader(killed);
  await back();
}

it('the leader of the turns is killed three times: no stream is cut, no acknowledged turn is lost or doubled', async () => {
  for (let kills = 0; kills < 3; kills += 1) {
    const ledger = await rig.during(killLeader, { after: 30 });
    expect(ledger.filter(({ finished, error }) => !finished || error !== '')).toEqual([]);
  }
  expect(await rig.problems()).toEqual([]);
  const broker = await rig.machine.broker();
  const { config, cluster } = await broker.jsm.streams.info('TURNS');
  expect(config.num_replicas).toBe(3);
  expect(cluster?.replicas).toHaveLength(2);
  await broker.close();
});
