import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { FailureRig } from './rig.js';

let rig: FailureRig;

beforeAll(async () => {
  rig = await FailureRig.start();
});

afterAll(async () => {
  await rig?.stop();
});

describe('SIGKILL under load loses nothing and doubles nothing', () => {
  it.each(['collector', 'judge', 'trainer', 'publisher', 'loader'])(
    'of the %s, and no client notices',
    async (name) => {
      const ledger = await rig.during(() => rig.killed(name));
      expect(ledger.filter(({ finished, error }) => !finished || error !== '')).toEqual([]);
      expect(await rig.problems()).toEqual([]);
    },
  );

  it('of the gateway, where clients lose only what was in flight', async () => {
    const ledger = await rig.during(() => rig.killed('gateway'));
    expect(ledger.some(({ finished }) => !finished)).toBe(true);
    expect(await rig.problems()).toEqual([]);
  });
});
