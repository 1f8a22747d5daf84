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
    'a kill of the %s under load loses nothing, and no client notices',
    async (name) => {
      const ledger = await rig.during(() => rig.killed(name));
      expect(ledger.filter(({ finished, error }) => !finished || error !== '')).toEqual([]);
      expect(await rig.problems()).toEqual([]);
    },
  );

  it('a kill of the gateway under load loses only what its clients had in flight', async () => {
    const ledger = await rig.during(() => rig.killed('gateway'));
    expect(ledger.some(({ finished }) => !finished)).toBe(true);
    expect(await rig.problems()).toEqual([]);
  });
});
