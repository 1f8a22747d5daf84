// Payloads that the blob store has lost, through a real trainer: before a batch closes, and once it is closed.
import { randomBytes } from 'node:crypto';

import { systemClock, type Clock } from '@backtalk/kit';
import { until } from '@backtalk/kit/testing';
import { BatchClosed } from '@backtalk/proto/facts';
import { afterEach, describe, expect, it } from 'vitest';

import { TrainerRig } from './testing/trainer-rig.js';

let rig: TrainerRig;

afterEach(() => rig.stop());

describe('a payload that the blob store has lost', () => {
  const noise = () => JSON.stringify([{ role: 'user', content: randomBytes(1_000_000).toString('hex') }]);
  const later = (minutes: number): Clock => ({ ...systemClock, now: () => systemClock.now() + minutes * 60_000 });
  const closable = { BACKTALK_RECIPE_SET: 'effective=2,effectiveMin=2,waitMs=3600000,templateMismatchShareMax=1' };

  /** Two corrected turns; the payload of the first, or of a turn that it continues, lies in the blob store. */
  async function twoTurns(whose: string): Promise<void> {
    const isOwn = whose === 'its own';
    if (!isOwn) await rig.open({ turn: 'early', messages: noise() });
    await rig.correct(1, { name: 'gone', ...(isOwn ? { messages: noise() } : { base: 'early' }) });
  }

  it.each(['its own', 'that of an earlier turn'])(
    '%s: the turn is settled as missing when a batch would take it, and others go on',
    async (whose) => {
      rig = await TrainerRig.start({ environment: closable });
      await rig.pause(true);
      const trainer = await rig.startTrainer('one', {}, { clock: later(11) });
      await twoTurns(whose);
      await rig.correct(1, { name: 'good' });
      await until(async () => (await rig.metric(trainer, /turns_pending\{.*kind="effective"/)) === 2);
      await rig.losePayloads();
      await rig.pause(false);
      await until(async () => (await rig.metric(trainer, /turns_pending\{.*kind="settled"/)) === 1);
      await rig.correct(1, { name: 'next' });
      await rig.untilVersions(1);
      const [batch] = await rig.batches();
      expect(batch?.samples.map(({ turn }) => turn)).toEqual(['good0', 'next0']);
      expect(batch?.settled).toMatchObject([{ turn: 'gone0', reason: 'missing' }]);
      expect(await rig.metric(trainer, /turns_settled_total\{.*reason="missing"/)).toBe(1);
    },
  );

  it.each(['its own', 'that of an earlier turn'])(
    '%s: a closed batch waits while the turn is young, at no try, and is trained without it then',
    async (whose) => {
      rig = await TrainerRig.start({ environment: { ...closable, BACKTALK_STEP_RETRY_MAX: '10ms' } });
      await twoTurns(whose);
      await rig.correct(1, { name: 'good' });
      const ids = { tenant: 'tenant0', user: 'user0', effective: true };
      const samples = ['gone0', 'good0'].map((turn) => ({ ...ids, turn }));
      const shape = { policy: 'backtalk', number: 1, parent: 'backtalk-v0', version: 'backtalk-v1', why: 'full' };
      await rig.closeElsewhere(BatchClosed.fromPartial({ ...shape, samples, configDigest: await rig.keepPlan() }));
      await rig.losePayloads();
      const young = await rig.startTrainer();
      await until(async () => (await rig.metric(young, /steps_put_off_total\{.*code="payload_late"/)) > 10);
      await rig.stopTrainer(young);
      expect(await rig.batches()).toHaveLength(1);
      const trainer = await rig.startTrainer('two', {}, { clock: later(11) });
      const [version] = await rig.untilVersions(1);
      const dropped = version?.report?.samples.map((sample) => [sample.turn, sample.dropped]);
      expect(dropped).toEqual([
        ['good0', ''],
        ['gone0', 'missing'],
      ]);
      expect(await rig.metric(trainer, /samples_dropped_total\{.*reason="missing"/)).toBe(1);
    },
  );
});
