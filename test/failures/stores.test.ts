import { createLogger } from '@backtalk/kit';
import { connectValkey } from '@backtalk/kit/valkey';
import { until } from '@backtalk/kit/testing';
import type { Redis } from 'ioredis';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { secretsIn, secretsOf } from '../loop/secrets.js';
import { startGuarded, type Guarded } from './guarded.js';
import { FailureRig } from './rig.js';

let guarded: Guarded;
let rig: FailureRig;

beforeAll(async () => {
  guarded = await startGuarded();
  rig = await FailureRig.start(guarded.options);
});

afterAll(async () => {
  await rig?.stop();
  await guarded?.stopS3();
  guarded?.remove();
});

async function withValkey(work: (client: Redis) => Promise<unknown>): Promise<void> {
  const client = connectValkey({
    url: rig.machine.valkey,
    name: 'test',
    logger: createLogger({ service: 'test', level: 'silent' }),
  });
  await until(() => client.status === 'ready', { what: 'A connection to Valkey' });
  await work(client);
  client.disconnect();
}

describe('under load', () => {
  it('a broker that is killed and comes back cuts no stream, loses nothing and doubles nothing', async () => {
    const ledger = await rig.during(() => rig.killed('nats'));
    expect(ledger.filter(({ finished, error }) => !finished || error !== '')).toEqual([]);
    expect(await rig.problems()).toEqual([]);
  });

  it('a Valkey that is emptied loses nothing and doubles nothing', async () => {
    const ledger = await rig.during(() => withValkey((client) => client.flushall()));
    expect(ledger.filter(({ finished, error }) => !finished || error !== '')).toEqual([]);
    expect(await rig.problems()).toEqual([]);
  });

  it('a Valkey that is killed and comes back loses nothing and doubles nothing', async () => {
    const ledger = await rig.during(() => rig.killed('valkey'));
    expect(ledger.filter(({ finished, error }) => !finished || error !== '')).toEqual([]);
    expect(await rig.problems()).toEqual([]);
  });
});

/** The last test: it leaves stores that answer nobody any more. */
it('no secret of any process stands in what all processes wrote, through faults and stores that refuse them', async () => {
  const wrote = (words: string) => until(() => rig.machine.logs().includes(words), { what: words, timeoutMs: 60_000 });
  await rig.during(
    async () => {
      await withValkey(async (client) => {
        await client.config('SET', 'requirepass', 'another');
        await client.call('CLIENT', 'KILL', 'TYPE', 'normal', 'SKIPME', 'yes');
      });
      await wrote('WRONGPASS');
      await guarded.stopS3();
    },
    { after: 3 },
  );
  const secrets = secretsOf(rig.machine);
  const names = [...secrets.keys()].join('\n');
  for (const service of ['gateway', 'collector', 'judge', 'trainer', 'publisher', 'loader']) {
    expect(names).toContain(`${service} BACKTALK_NATS_PASSWORD`);
    expect(names).toContain(`${service} BACKTALK_VALKEY_URL`);
    expect(names).toContain(`${service} BACKTALK_HASH_SECRET`);
    expect(names).toContain(`${service} BACKTALK_TLS_KEY line 1`);
    if (guarded.hasS3) expect(names).toContain(`${service} BACKTALK_S3_SECRET_KEY`);
  }
  for (const name of [
    'engine BACKTALK_ENGINE_KEY',
    'training-worker BACKTALK_TRAINER_TO_TRAINING_TOKEN',
    'file admin',
    'file cliToPublisher',
    'file valkeyPassword',
    'collector BACKTALK_NATS_MONITOR_URL',
  ])
    expect(names).toContain(name);
  const logs = rig.machine.logs();
  expect(secretsIn(logs, secrets)).toEqual([]);
  // The words of the canaries alone, should one be cut or quoted.
  expect(logs.match(/zqx\w{0,40}/g)).toBeNull();
});
