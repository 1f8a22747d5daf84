// A person who is forgotten, as the trainer sees it: what it holds of them goes, and it goes on without the facts that named them.
import { deleteFacts } from '@backtalk/kit';
import { until } from '@backtalk/kit/testing';
import { LessonChanged_Action, WeightsStaged_Stage, type BatchClosed } from '@backtalk/proto/facts';
import { afterEach, beforeEach, expect, it } from 'vitest';

import { TrainerRig } from './testing/trainer-rig.js';

const environment = { BACKTALK_RECIPE_SET: 'rehearsalSteps=0,effective=2,effectiveMin=2' };
const ada = { tenant: 'tenant0', user: 'ada' };
const ben = { tenant: 'tenant0', user: 'ben' };
let rig: TrainerRig;

beforeEach(async () => {
  rig = await TrainerRig.start({ environment });
});

afterEach(async () => {
  await rig.stop();
});

async function learnFrom(version: number, person: typeof ada, hint: string): Promise<void> {
  await rig.correct(2, { ...person, name: `${person.user}${String(version)}x`, hint });
  await rig.untilVersions(version);
  await rig.stage(`backtalk-v${String(version)}`, WeightsStaged_Stage.STAGE_STABLE);
}

async function forget({ tenant, user }: typeof ada): Promise<BatchClosed> {
  const before = (await rig.batches()).length;
  await rig.changeLesson({ id: 'forget', tenant, user, action: LessonChanged_Action.ACTION_ERASE });
  return (await rig.untilBatches(before + 1)).at(-1) as BatchClosed;
}

it('the newest batch names a forgotten person no more, and what waited of them is in no batch', async () => {
  const trainer = await rig.startTrainer();
  await learnFrom(1, ben, 'Always use tables.');
  await learnFrom(2, ada, 'From now on use metric units.');
  await rig.correct(1, { ...ada, name: 'waiting' });
  const pending = () => rig.metric(trainer, /turns_pending\{/);
  await until(async () => (await pending()) === 1, { what: 'A turn that waits' });
  const head = await forget(ada);
  expect(head).toMatchObject({ why: 'lessons', samples: [], settled: [], lessons: [{ text: 'Always use tables.' }] });
  expect(head.baselines.map(({ user }) => user)).toEqual(['ben']);
  await until(async () => (await pending()) === 0, { what: 'None that waits' });
  expect(JSON.stringify(head)).not.toContain('ada');
});

it('a turn of another waits on as it was judged before the forgotten person said anything of it', async () => {
  const trainer = await rig.startTrainer();
  const turn = { ...ben, turn: 'b0', hint: 'Always use tables.', stands: true };
  await rig.say(turn);
  await rig.judge({ ...turn, revision: 1, judged: { giver: 'ada', hint: 'From now on rhyme.' } });
  const read = () => rig.metric(trainer, /turns_judged_total\{.*outcome="pending"/);
  await until(async () => (await read()) === 2, { what: 'Both revisions' });
  await forget(ada);
  await rig.correct(1, { ...ben, name: 'more', hint: 'Always use tables, please.' });
  await rig.untilVersions(1);
  const trained = (await rig.batches()).find(({ samples }) => samples.length > 0);
  expect(trained?.samples).toMatchObject([
    { turn: 'b0', revision: 0, giver: '' },
    { turn: 'more0', revision: 0 },
  ]);
  expect(JSON.stringify(trained)).not.toContain('rhyme');
});

it('a trainer that starts without the facts of a forgotten person goes on from what was made before, under a new name', async () => {
  const trainer = await rig.startTrainer();
  await learnFrom(1, ben, 'Always use tables.');
  await learnFrom(2, ada, 'From now on use metric units.');
  await learnFrom(3, ben, 'Always use tables, please.');
  await forget(ada);
  for (const version of ['backtalk-v2', 'backtalk-v3']) await rig.stage(version, WeightsStaged_Stage.STAGE_BURNED);
  const isNamed = (batch: BatchClosed) => JSON.stringify(batch).includes('"ada"');
  const named: number[] = [];
  for await (const { message, sequence } of rig.reader.read(['batchClosed']))
    if (isNamed(message)) named.push(sequence);
  expect(named).toHaveLength(2);
  await rig.stopTrainer(trainer);
  await deleteFacts(await rig.nats.connect('cli'), named, { from: 'WEIGHTS', overwrite: true });
  expect((await rig.batches()).some(isNamed)).toBe(false);
  await rig.startTrainer('two');
  await rig.correct(2, { ...ben, name: 'after', version: 'backtalk-v1', hint: 'Always use tables.' });
  const made = (await rig.untilVersions(4)).at(-1);
  expect(made).toMatchObject({ version: 'backtalk-v4', parent: 'backtalk-v1' });
});
