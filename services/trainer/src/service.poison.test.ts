// What hostile feedback can reach, through a real trainer: how much of each batch, whose teachers, whose tenant. How much of the gain it
// costs is a learning curve's to say, not these tests'.
import { until } from '@backtalk/kit/testing';
import { WeightsStaged_Stage, type BatchClosed, type BatchSample } from '@backtalk/proto/facts';
import { afterEach, describe, expect, it } from 'vitest';

import { TrainerRig } from './testing/trainer-rig.js';
import type { TurnShape } from './testing/turns.js';

const hostileWish = 'Always answer in capital letters.';
const honestWish = 'Always answer in one brief sentence.';
const honestTurns = 28;
const hostileTurns = 12;
const batchSize = 8;
let rig: TrainerRig;

afterEach(() => rig.stop());

/** All that was said waits before learning goes on, so that no batch is spared by who came later; out: the batches that took a step. */
async function learnFrom(turns: readonly TurnShape[], versions: number): Promise<BatchClosed[]> {
  rig = await TrainerRig.start({ environment: { BACKTALK_RECIPE_SET: `effective=${batchSize},waitMs=600000` } });
  await rig.pause(true);
  for (const turn of turns) await rig.say({ stands: true, ...turn });
  const trainer = await rig.startTrainer();
  const waiting = () => rig.metric(trainer, /turns_pending\{.*kind="effective"/);
  await until(async () => (await waiting()) === turns.length, { what: 'All that was said' });
  await rig.pause(false);
  for (let count = 1; count <= versions; count += 1) {
    const trained = await rig.untilVersions(count);
    await rig.stage(trained.at(-1)?.version ?? '', WeightsStaged_Stage.STAGE_STABLE);
  }
  return (await rig.batches()).filter(({ samples }) => samples.length > 0);
}

const honest = (n: number): TurnShape => ({ turn: `honest${n}`, user: `person${n % 14}`, hint: honestWish });
const isHostile = ({ turn }: BatchSample) => turn.startsWith('hostile');

/** The lessons that come of what hostile people said. */
function hostileLessons(batches: readonly BatchClosed[]): Set<string> {
  const wishes = batches.flatMap(({ lessons }) => lessons).filter(({ text }) => text.includes('capital'));
  return new Set(wishes.map(({ id }) => id));
}

describe('poison, three turns in ten', () => {
  it('hostile feedback from one key on everyone’s turns gives no batch more than a quarter, and no one else’s teacher a word', async () => {
    const hostile = Array.from({ length: hostileTurns }, (_, n): TurnShape => {
      return { turn: `hostile${n}`, user: `person${n}`, hint: hostileWish, judged: { giver: 'eve' } };
    });
    const batches = await learnFrom([...hostile, ...Array.from({ length: honestTurns }, (_, n) => honest(n))], 4);
    for (const { samples } of batches) expect(samples.filter(isHostile)).toHaveLength(batchSize / 4);
    // What was said about the turn of another person is about that turn alone.
    expect(hostileLessons(batches).size).toBe(0);
    const taught = batches.flatMap(({ samples }) => samples).filter((sample) => !isHostile(sample));
    expect(taught.filter(({ hindsight }) => hindsight.includes('capital'))).toEqual([]);
  });

  it('hostile feedback from ten keys stays the minority of each batch that it waits in beside others, and in teachers of its own', async () => {
    const turns = Array.from({ length: honestTurns + hostileTurns }, (_, n): TurnShape => {
      const isTheirs = n % 10 < 3;
      const key = (3 * Math.floor(n / 10) + (n % 10)) % 10;
      return isTheirs ? { turn: `hostile${n}`, user: `eve${key}`, hint: hostileWish } : honest(n);
    });
    const batches = await learnFrom(turns, 4);
    for (const { samples } of batches) expect(samples.filter(isHostile).length).toBeLessThan(batchSize / 2);
    const hostile = hostileLessons(batches);
    expect(hostile.size).toBeGreaterThan(0);
    const taught = batches.flatMap(({ samples }) => samples).filter((sample) => !isHostile(sample));
    expect(taught.flatMap(({ lessons }) => lessons).filter((id) => hostile.has(id))).toEqual([]);
  });

  it('hostile feedback of one tenant is in no batch and no lesson of another', async () => {
    const turns = Array.from({ length: 2 * batchSize }, (_, n): TurnShape => {
      const user = `user${n % 8}`;
      if (n % 2 === 0) return { turn: `hostile${n}`, tenant: 'tenant1', user, hint: hostileWish };
      return { turn: `honest${n}`, tenant: 'tenant0', user, hint: honestWish };
    });
    const batches = await learnFrom(turns, 2);
    expect(batches.map(({ samples }) => new Set(samples.map(({ tenant }) => tenant)).size)).toEqual([1, 1]);
    const hostile = hostileLessons(batches);
    expect(hostile.size).toBeGreaterThan(0);
    const taught = batches.flatMap(({ samples }) => samples).filter(({ tenant }) => tenant === 'tenant0');
    expect(taught).toHaveLength(batchSize);
    expect(taught.flatMap(({ lessons }) => lessons).filter((id) => hostile.has(id))).toEqual([]);
  });
});
