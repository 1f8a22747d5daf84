// Attempts at a task: they wait for their outcomes, and a group is trained on by what its attempts got beside each other.
import { until } from '@backtalk/kit/testing';
import { WeightsStaged_Stage } from '@backtalk/proto/facts';
import { afterEach, expect, it } from 'vitest';

import { TrainerRig } from './testing/trainer-rig.js';

let rig: TrainerRig;
afterEach(() => rig.stop());

const attempts = ['a', 'b', 'c', 'd'] as const;

/** Two steps, as the judge tells them before the outcome is known, */
async function act(attempt: string): Promise<void> {
  for (const step of [0, 1])
    await rig.say({ turn: `${attempt}${step}`, session: attempt, group: 'g', step, verdict: 1 });
}

/** and when it is. */
async function end(attempt: string, score: number): Promise<void> {
  const judged = { outcome: { score, attempts: attempts.length, turns: 2 } };
  for (const step of [0, 1])
    await rig.judge({ turn: `${attempt}${step}`, session: attempt, verdict: 1, revision: 1, judged });
}

it('attempts wait for all of their group, and are trained on by what they got beside each other', async () => {
  rig = await TrainerRig.start({ environment: { BACKTALK_RECIPE_SET: 'method=binary,effective=4,effectiveMin=2' } });
  const first = await rig.startTrainer();
  for (const attempt of attempts) await act(attempt);
  await end('a', 1);
  await end('b', 0);
  await end('c', 0);
  await until(async () => (await rig.metric(first, /turns_judged_total\{.*outcome="pending"/)) === 14);
  await until(async () => (await rig.metric(first, /turns_pending\{.*kind="attempts"/)) === 8);
  expect(await rig.batches()).toEqual([]);
  await end('d', -1);
  const [batch] = await rig.untilBatches(1);
  // Rewards 2, 1, 1 and 0 at each step: mean 1, deviation √.5; the middle ones teach nothing.
  expect(batch?.samples.map(({ turn, advantage }) => [turn, Number(advantage.toFixed(9))])).toEqual([
    ['a0', 1.414213562],
    ['a1', 1.414213562],
    ['d0', -1.414213562],
    ['d1', -1.414213562],
  ]);
  expect(batch?.samples[0]?.attempt).toEqual({ group: 'g', attempt: 'a', step: 0, reward: 2 });
  expect(batch?.settled.map(({ turn, reason }) => [turn, reason])).toEqual(
    ['b0', 'b1', 'c0', 'c1'].map((turn) => [turn, 'nothing_to_learn']),
  );
  await until(async () => (await rig.openFacts()) === 0, { what: 'The ack of every revision' });
});

it('a group that is larger than a batch has the same figures in the next, after a restart too', async () => {
  rig = await TrainerRig.start({
    environment: { BACKTALK_RECIPE_SET: 'method=binary,effective=3,effectiveMin=1,waitMs=1000,stepReward=outcome' },
  });
  const first = await rig.startTrainer();
  const scores = [1, 0.5, -0.5, -1];
  for (const step of [0, 1])
    for (const attempt of attempts)
      await rig.say({ turn: `${attempt}${step}`, session: attempt, group: 'g', step, verdict: 0 });
  for (const step of [0, 1])
    for (const [at, attempt] of attempts.entries()) {
      const judged = { outcome: { score: scores[at] ?? 0, attempts: attempts.length, turns: 2 } };
      await rig.judge({ turn: `${attempt}${step}`, session: attempt, verdict: 0, revision: 1, judged });
    }
  await rig.untilVersions(1);
  await rig.stopTrainer(first);
  await rig.startTrainer('two');
  await rig.stage('backtalk-v1', WeightsStaged_Stage.STAGE_STABLE);
  await rig.untilVersions(2);
  await rig.stage('backtalk-v2', WeightsStaged_Stage.STAGE_STABLE);
  const batches = await rig.untilBatches(3);
  // Mean 0, deviation √.625, at each step.
  const advantages = batches.flatMap(({ samples }) =>
    samples.map((one) => [one.turn, Number(one.advantage.toFixed(6))]),
  );
  expect(advantages).toHaveLength(8);
  for (const [at, advantage] of [1.264911, 0.632456, -0.632456, -1.264911].entries())
    for (const step of [0, 1]) expect(advantages).toContainEqual([`${attempts[at] ?? ''}${step}`, advantage]);
  // The other step's are fixed with the first batch, which takes none of it.
  expect(batches.map(({ steps }) => steps.map(({ step, count }) => [step, count]))).toEqual(
    Array(3).fill([
      [0, 4],
      [1, 4],
    ]),
  );
});

it('an attempt that was left without an outcome is settled by name', async () => {
  rig = await TrainerRig.start({ environment: { BACKTALK_RECIPE_SET: 'groupWaitMs=500,settleAtTurns=2' } });
  const trainer = await rig.startTrainer();
  await act('left');
  const [batch] = await rig.untilBatches(1);
  expect(batch).toMatchObject({ why: 'settled', samples: [] });
  expect(batch?.settled.map(({ reason }) => reason)).toEqual(['no_outcome', 'no_outcome']);
  await until(async () => (await rig.metric(trainer, /turns_settled_total\{.*reason="no_outcome"/)) === 2);
});
