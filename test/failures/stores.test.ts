import { connectValkey, createLogger } from '@backtalk/kit';
import { until } from '@backtalk/kit/testing';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { FailureRig } from './rig.js';

let rig: FailureRig;

beforeAll(async () => {
  rig = await FailureRig.start();
});

afterAll(async () => {
  await rig?.stop();
});

async function emptyValkey(): Promise<void> {
  const client = connectValkey({
    url: `redis://127.0.0.1:${String(rig.machine.ports.valkey)}`,
    name: 'test',
    logger: createLogger({ service: 'test', level: 'silent' }),
  });
  await until(() => client.status === 'ready', { what: 'A connection to Valkey' });
  await client.flushall();
  client.disconnect();
}

describe('under load', () => {
  it('a broker that is killed and comes back cuts no stream, loses nothing and doubles nothing', async () => {
    const ledger = await rig.during(() => rig.killed('nats'));
    expect(ledger.filter(({ finished, error }) => !finished || error !== '')).toEqual([]);
    expect(await rig.problems()).toEqual([]);
  });

  it('a Valkey that is emptied loses nothing and doubles nothing', async () => {
    const ledger = await rig.during(emptyValkey);
    expect(ledger.filter(({ finished, error }) => !finished || error !== '')).toEqual([]);
    expect(await rig.problems()).toEqual([]);
  });

  it('a Valkey that is killed and comes back loses nothing and doubles nothing', async () => {
    const ledger = await rig.during(() => rig.killed('valkey'));
    expect(ledger.filter(({ finished, error }) => !finished || error !== '')).toEqual([]);
    expect(await rig.problems()).toEqual([]);
  });
});
