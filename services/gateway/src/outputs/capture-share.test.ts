import { createLogger, Metrics, systemClock } from '@backtalk/kit';
import { FakeClock, startValkey, until, type TestValkey } from '@backtalk/kit/testing';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { keylessId } from '../domain/caller.js';
import { createEvents } from '../events.js';
import { CaptureShare } from './capture-share.js';
import { Valkey } from './valkey.js';

let server: TestValkey;
const valkeys: Valkey[] = [];
const shares: CaptureShare[] = [];

beforeAll(async () => {
  server = await startValkey();
});

afterAll(async () => {
  for (const share of shares) await share.stop();
  for (const valkey of valkeys) valkey.stop();
  await server.stop();
});

function gateway(clock = systemClock, valkeyUrl = server.url): CaptureShare {
  const events = createEvents(createLogger({ service: 'gateway', level: 'silent' }), new Metrics('gateway'));
  const valkey = new Valkey({ valkeyUrl, lookupWaitMs: 5_000, instance: 'a' }, systemClock, events);
  valkey.start();
  valkeys.push(valkey);
  const share = new CaptureShare(valkey, clock, 1_000);
  shares.push(share);
  return share;
}

const caller = (tenant: string, keyId: string, captureBytesPerDay?: number) => ({
  tenant,
  keyId,
  limits: { captureBytesPerDay },
});

describe('CaptureShare', () => {
  it('adds up what all gateways store for a tenant, also what one stored before it was started again', async () => {
    const [one, other] = [gateway(), gateway()];
    one.add(caller('acme', 'ann'), 600);
    other.add(caller('acme', 'bob'), 600);
    for (const share of [one, other, gateway()])
      await until(() => share.fullOf(caller('acme', 'eve')) === 'tenant', { what: 'the sum' });
    expect(one.fullOf(caller('other', 'eve'))).toBeUndefined();
  });

  it('bounds a key by its own share, and leaves the tenant’s other keys theirs', () => {
    const share = gateway();
    share.add(caller('big', 'small', 100), 100);
    expect(share.fullOf(caller('big', 'small', 100))).toBe('key');
    expect(share.fullOf(caller('big', 'free'))).toBeUndefined();
    expect(share.fullOf(caller('big', 'none', 0))).toBe('key');
  });

  it('leaves half of a tenant’s day to other keys where a key has no number of its own', () => {
    const share = gateway();
    share.add(caller('half', 'greedy'), 500);
    expect(share.fullOf(caller('half', 'greedy'))).toBe('key');
    expect(share.fullOf(caller('half', 'modest'))).toBeUndefined();
    expect(share.fullOf(caller('half', 'given', 800))).toBeUndefined();
    // Without keys there is one caller, whose day it is.
    share.add(caller('one', keylessId), 999);
    expect(share.fullOf(caller('one', keylessId))).toBeUndefined();
  });

  it('holds without Valkey, and begins again with the day', async () => {
    const clock = new FakeClock();
    const share = gateway(clock, 'redis://127.0.0.1:1');
    share.add(caller('acme', 'ann', 1_000), 500);
    share.add(caller('acme', 'bob', 1_000), 500);
    expect(share.fullOf(caller('acme', 'ann', 1_000))).toBe('tenant');
    await clock.advance(24 * 60 * 60 * 1000);
    expect(share.fullOf(caller('acme', 'ann'))).toBeUndefined();
  });
});
