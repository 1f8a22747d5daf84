import { fakePromptIds } from '@backtalk/dialects/testing';
import { sha256Hex } from '@backtalk/kit';
import { until } from '@backtalk/kit/testing';
import { Lesson_State, WeightsStaged_Stage } from '@backtalk/proto/facts';
import { WeightsManifest } from '@backtalk/proto/weights';
import { afterEach, describe, expect, it } from 'vitest';

import { TrainerRig, type RigOptions } from './testing/trainer-rig.js';

const { STAGE_STABLE, STAGE_BURNED } = WeightsStaged_Stage;
let rig: TrainerRig;

async function rigWith(options: RigOptions = {}): Promise<TrainerRig> {
  rig = await TrainerRig.start(options);
  return rig;
}

afterEach(async () => {
  await rig.stop();
});

it('tenants that never have enough for a batch keep nobody else from being heard, however many they are', async () => {
  await rigWith({
    environment: {
      BACKTALK_PENDING_MAX: '16',
      BACKTALK_RECIPE_SET: 'effective=4,effectiveMin=4,waitMs=100,settleAtTurns=1000',
    },
  });
  const trainer = await rig.startTrainer();
  for (let n = 0; n < 10; n += 1) await rig.correct(3, { name: `few${n}x`, tenant: `few${n}` });
  await rig.correct(4, { name: 'many', tenant: 'many' });
  const [version] = await rig.untilVersions(1);
  const batches = await rig.batches();
  const trained = batches.find(({ number }) => number === version?.batch);
  expect(trained?.samples.map(({ tenant }) => tenant)).toEqual(Array(4).fill('many'));
  const settled = batches.flatMap((batch) => batch.settled);
  expect(new Set(settled.map(({ reason }) => reason))).toEqual(new Set(['crowded_out']));
  expect(settled[0]).toMatchObject({ turn: 'few0x0', tenant: 'few0' });
  expect(await rig.metric(trainer, /turns_settled_total\{.*reason="crowded_out"/)).toBeGreaterThan(0);
});

describe('a batch', () => {
  it('a batch closes when it is full, is trained, and its version can be loaded from the blob store', async () => {
    await rigWith();
    await rig.startTrainer();
    const turns = await rig.correct(8);
    const [version] = await rig.untilVersions(1);
    const [batch] = await rig.batches();

    expect(batch).toMatchObject({ number: 1, parent: 'backtalk-v0', version: 'backtalk-v1', why: 'full' });
    expect(batch?.samples.map(({ turn }) => turn)).toEqual(turns);
    expect(version).toMatchObject({
      batch: 1,
      version: 'backtalk-v1',
      parent: 'backtalk-v0',
      report: { measurements: { kl_step: 0.5 } },
    });
    const manifest = WeightsManifest.decode(await rig.blobs.get(version?.manifestDigest ?? ''));
    expect(manifest).toMatchObject({
      version: 'backtalk-v1',
      loraRank: 8,
      loraAlpha: 16,
      configDigest: batch?.configDigest,
    });
    for (const { digest } of [...manifest.adapter, ...manifest.trainingState]) {
      expect(sha256Hex(await rig.blobs.get(digest))).toBe(digest);
    }
    await until(async () => (await rig.openFacts()) === 0, { what: 'The ack of every judged fact' });
  });

  it('each policy’s batch takes and settles turns of that policy alone', async () => {
    const environment = { BACKTALK_RECIPE_SET: 'effective=2,effectiveMin=1,waitMs=600000' };
    await rigWith({ environment: { BACKTALK_POLICIES: 'backtalk,other', ...environment } });
    await rig.startTrainer();
    for (const name of ['first', 'second']) {
      await rig.correct(1, { name });
      await rig.correct(1, { name: `others-${name}-`, policy: 'other' });
    }
    await rig.untilVersions(2);
    const named = ({ turn }: { readonly turn: string }) => turn;
    const closed = (await rig.batches()).map(({ policy, samples, settled }) => ({
      policy,
      turns: samples.map(named),
      // A turn of another policy names a version that this one never had, and would be settled.
      settled: settled.map(named),
    }));
    expect(closed.toSorted((one, other) => one.policy.localeCompare(other.policy))).toEqual([
      { policy: 'backtalk', turns: ['first0', 'second0'], settled: [] },
      { policy: 'other', turns: ['others-first-0', 'others-second-0'], settled: [] },
    ]);
  });

  it('asks the worker with the laptop’s settings, and ids that an engine rendered with the lesson and without', async () => {
    await rigWith();
    await rig.startTrainer();
    await rig.correct(8);
    await rig.untilVersions(1);
    const request = rig.worker.steps[0]?.request;
    expect(request).toMatchObject({ call: 'backtalk-1', version: 'backtalk-v1', meanAnswerLength: 40 });
    expect(request?.config).toMatchObject({
      method: 'combined',
      opdForm: 'hybrid',
      divergence: 'jeffreys',
      weightRl: 0.1,
      weightOpd: 1,
      loraRank: 8,
      loraAlpha: 16,
      learningRate: 2e-3,
      adamBeta1: 0.9,
      adamBeta2: 0.98,
      gradientClip: 1,
      stepBound: 40,
      optimizerSteps: 4,
      maxAnswerTokens: 48,
      klBeta: 0,
    });
    expect(request?.probePromptIds).toHaveLength(4);
    expect(request?.samples[3]).toMatchObject({
      turn: 'turn3',
      promptIds: fakePromptIds([{ role: 'user', content: 'turn3?' }]),
      teacherPromptIds: fakePromptIds([{ role: 'user', content: 'turn3?\n\nAnswer in one brief sentence.' }]),
      advantage: -1,
    });
  });

  it('a batch closes with four when the oldest has waited long enough', async () => {
    await rigWith({ environment: { BACKTALK_RECIPE_SET: 'waitMs=1000' } });
    await rig.startTrainer();
    await rig.correct(4);
    const [batch] = await rig.untilBatches(1);
    expect(batch).toMatchObject({ why: 'timeout' });
    expect(batch?.samples).toHaveLength(4);
  });

  it('takes anchors beside effective samples and settles what cannot be trained on', async () => {
    await rigWith();
    const trainer = await rig.startTrainer();
    await rig.correct(3, { name: 'plain', verdict: 0, hint: '' });
    await rig.correct(1, { name: 'aborted', reasons: ['aborted'] });
    await rig.correct(8);
    const [batch] = await rig.untilBatches(1);
    expect(batch?.samples.filter(({ effective }) => !effective).map(({ turn }) => turn)).toEqual([
      'plain0',
      'plain1',
      'plain2',
    ]);
    expect(batch?.settled).toMatchObject([{ turn: 'aborted0', reason: 'aborted' }]);
    await rig.untilVersions(1);
    expect(await rig.metric(trainer, /turns_settled_total\{.*reason="aborted"/)).toBe(1);
    expect(await rig.metric(trainer, /samples_taken_total\{.*kind="anchor"/)).toBe(3);
  });

  it('settles turns without training when there is nothing to learn, and says so', async () => {
    await rigWith({ environment: { BACKTALK_RECIPE_SET: 'settleAtTurns=4' } });
    const trainer = await rig.startTrainer();
    await rig.correct(4, { verdict: 0, hint: '' });
    const [batch] = await rig.untilBatches(1);
    expect(batch).toMatchObject({ number: 1, version: '', samples: [], why: 'settled' });
    expect(batch?.settled.map(({ reason }) => reason)).toEqual(Array(4).fill('nothing_to_learn'));
    await until(async () => (await rig.openFacts()) === 0);
    expect(await rig.metric(trainer, /turns_settled_total\{.*reason="nothing_to_learn"/)).toBe(4);
    expect(rig.worker.steps).toEqual([]);
  });

  it('gives no user more than a quarter where three wait', async () => {
    await rigWith({ environment: { BACKTALK_RECIPE_SET: 'waitMs=2000' } });
    await rig.startTrainer();
    await rig.correct(1, { name: 'b', user: 'userb' });
    await rig.correct(1, { name: 'c', user: 'userc' });
    await rig.correct(12, { name: 'a', user: 'usera' });
    const [batch] = await rig.untilBatches(1);
    const mine = batch?.samples.filter(({ user }) => user === 'usera');
    expect(mine?.map(({ turn }) => turn)).toEqual(['a0', 'a1']);
  });

  it('settles stale turns and counts them', async () => {
    await rigWith({
      environment: { BACKTALK_RECIPE_SET: 'distillVersions=0,rewardVersions=0,effective=2,effectiveMin=2' },
    });
    const trainer = await rig.startTrainer();
    await rig.correct(2);
    await rig.untilVersions(1);
    await rig.stage('backtalk-v1', STAGE_STABLE);
    await rig.correct(1, { name: 'old' });
    await rig.correct(2, { name: 'new', version: 'backtalk-v1' });
    const [, batch] = await rig.untilBatches(2);
    expect(batch?.samples.map(({ turn }) => turn)).toEqual(['new0', 'new1']);
    expect(batch?.settled).toMatchObject([{ turn: 'old0', reason: 'stale' }]);
    await until(async () => (await rig.metric(trainer, /turns_settled_total\{.*reason="stale"/)) === 1);
  });
});

describe('one sample per turn id, ever', () => {
  it('facts that are delivered twice give one sample', async () => {
    await rigWith({ environment: { BACKTALK_RECIPE_SET: 'effective=4' } });
    const first = await rig.startTrainer();
    const turns = await rig.correct(3);
    await until(async () => (await rig.metric(first, /turns_pending\{.*kind="effective"/)) === 3);
    await rig.stopTrainer(first);
    await rig.startTrainer('two');
    for (const turn of turns) await rig.judge({ turn, hint: 'Answer in one brief sentence.' });
    await rig.correct(1, { name: 'last' });
    const [batch] = await rig.untilBatches(1);
    expect(batch?.samples.map(({ turn }) => turn)).toEqual([...turns, 'last0']);
  });

  it('the highest revision before the close wins', async () => {
    await rigWith({ environment: { BACKTALK_RECIPE_SET: 'effective=2,effectiveMin=2' } });
    const trainer = await rig.startTrainer();
    await rig.say({ turn: 'spoken', verdict: 1 });
    await rig.judge({ turn: 'spoken', revision: 1, verdict: -1, hint: 'Write in French.' });
    await until(async () => (await rig.metric(trainer, /turns_judged_total\{.*outcome="pending"/)) === 2);
    await rig.correct(1);
    const [batch] = await rig.untilBatches(1);
    expect(batch?.samples[0]).toMatchObject({ turn: 'spoken', revision: 1, verdict: -1, advantage: -1 });
    expect(batch?.lessons.map(({ text }) => text)).toContain('Write in French.');
    await until(async () => (await rig.openFacts()) === 0, { what: 'The ack of both revisions' });
  });

  it('a revision after the close changes nothing, even after a restart', async () => {
    await rigWith({ environment: { BACKTALK_RECIPE_SET: 'effective=2,effectiveMin=2' } });
    const first = await rig.startTrainer();
    const [turn = ''] = await rig.correct(2);
    await rig.untilVersions(1);
    await rig.judge({ turn, revision: 1, verdict: 1 });
    await until(async () => (await rig.metric(first, /turns_judged_total\{.*outcome="settled_before"/)) === 1);
    await until(async () => (await rig.openFacts()) === 0, { what: 'The ack of the later revision' });
    await rig.stopTrainer(first);
    const second = await rig.startTrainer('two');
    await rig.judge({ turn, revision: 2, verdict: 1 });
    await until(async () => (await rig.metric(second, /turns_judged_total\{.*outcome="settled_before"/)) === 1);
    await until(async () => (await rig.openFacts()) === 0, { what: 'The ack of the last revision' });
    expect(await rig.batches()).toHaveLength(1);
  });
});

describe('versions', () => {
  it('a version waits for the decision on the one before', async () => {
    await rigWith({ environment: { BACKTALK_RECIPE_SET: 'effective=2,effectiveMin=2' } });
    const trainer = await rig.startTrainer();
    await rig.correct(2, { name: 'first' });
    await rig.untilVersions(1);
    await rig.correct(2, { name: 'second' });
    await until(async () => (await rig.metric(trainer, /turns_pending\{.*kind="effective"/)) === 2);
    expect(await rig.metric(trainer, /ledger_state\{.*state="awaiting_decision"/)).toBe(1);
    expect(await rig.batches()).toHaveLength(1);
    await rig.stage('backtalk-v1', STAGE_STABLE);
    const [, second] = await rig.untilVersions(2);
    expect(second).toMatchObject({ version: 'backtalk-v2', parent: 'backtalk-v1' });
    const given = rig.worker.steps[1]?.request.parentAdapter.map(({ digest }) => rig.worker.blobs.has(digest));
    expect(given).toEqual([true, true]);
  });

  it('a version never has a burned parent', async () => {
    await rigWith({ environment: { BACKTALK_RECIPE_SET: 'effective=2,effectiveMin=2' } });
    await rig.startTrainer();
    await rig.correct(2, { name: 'first' });
    await rig.untilVersions(1);
    await rig.stage('backtalk-v1', STAGE_STABLE);
    await rig.correct(2, { name: 'second' });
    await rig.untilVersions(2);
    await rig.stage('backtalk-v2', STAGE_STABLE);
    await rig.stage('backtalk-v2', STAGE_BURNED);
    await rig.correct(1, { name: 'quarantined', version: 'backtalk-v2' });
    await rig.correct(2, { name: 'third', version: 'backtalk-v1' });
    const [, , third] = await rig.untilVersions(3);
    expect(third).toMatchObject({ version: 'backtalk-v3', parent: 'backtalk-v1' });
    expect((await rig.batches())[2]?.settled).toMatchObject([{ turn: 'quarantined0', reason: 'burned_version' }]);
  });

  it('no version is made from a parent that is burned while the step runs: its samples are settled', async () => {
    await rigWith({ environment: { BACKTALK_RECIPE_SET: 'effective=2,effectiveMin=2' } });
    await rig.startTrainer();
    await rig.correct(2, { name: 'first' });
    await rig.untilVersions(1);
    await rig.stage('backtalk-v1', STAGE_STABLE);
    rig.worker.plot = ({ request }) => (request.parentAdapter.length > 0 ? new Promise(() => undefined) : undefined);
    await rig.correct(2, { name: 'second', version: 'backtalk-v1' });
    await until(() => rig.worker.steps.length === 2);
    await rig.stage('backtalk-v1', STAGE_BURNED);
    const [, , given] = await rig.untilBatches(3);
    expect(given).toMatchObject({ number: 3, why: 'burned_parent', samples: [] });
    expect(given?.settled).toMatchObject([
      { turn: 'second0', reason: 'burned_parent' },
      { turn: 'second1', reason: 'burned_parent' },
    ]);
    await rig.correct(2, { name: 'third' });
    const [, next] = await rig.untilVersions(2);
    expect(next).toMatchObject({ version: 'backtalk-v3', parent: 'backtalk-v0', batch: 4 });
  });
});

describe('lessons', () => {
  it('a learned lesson stays in every teacher, and is active again when a correction returns', async () => {
    await rigWith({ environment: { BACKTALK_RECIPE_SET: 'effective=2,effectiveMin=2' } });
    const found = { turns: 4, questions: 0, hidden: false, askedAgain: [], chance: -10, told: 10, own: 8 };
    const progress = {
      of: (_: string, lessons: readonly { id: string }[]) =>
        Promise.resolve(new Map(lessons.map(({ id }) => [id, found]))),
    };
    await rig.startTrainer('one', {}, { progress });
    for (const n of [1, 2]) {
      await rig.correct(2, { name: `batch${n}x` });
      await rig.untilVersions(n);
      await rig.stage(`backtalk-v${n}`, STAGE_STABLE);
      await rig.untilBatches(2 * n);
    }
    await rig.correct(2, { name: 'praise', verdict: 1, hint: '' });
    const praised = (await rig.untilBatches(5))[4];
    const [learned] = praised?.lessons ?? [];
    expect(learned?.state).toBe(Lesson_State.STATE_LEARNED);
    expect(praised?.samples.map(({ lessons }) => lessons)).toEqual([[learned?.id], [learned?.id]]);
    await rig.untilVersions(3);
    expect(rig.shown().map(([, hints]) => hints)).toEqual([[learned?.text], [learned?.text]]);
    await rig.stage('backtalk-v3', STAGE_STABLE);
    await rig.correct(2, { name: 'again', version: 'backtalk-v3' });
    const again = (await rig.untilBatches(6))[5];
    expect(again?.lessons[0]).toMatchObject({
      state: Lesson_State.STATE_ACTIVE,
      steps: 12,
      measures: [{ batch: 1 }, { batch: 3 }],
    });
  });
});

describe('the switch', () => {
  it('keeps batches from closing while learning is paused, over restarts too', async () => {
    await rigWith({ environment: { BACKTALK_RECIPE_SET: 'effective=2,effectiveMin=2' } });
    await rig.pause(true);
    const first = await rig.startTrainer();
    await rig.correct(4);
    await until(async () => (await rig.metric(first, /turns_pending\{.*kind="effective"/)) === 4);
    await rig.stopTrainer(first);
    const second = await rig.startTrainer('two');
    await until(async () => (await rig.metric(second, /turns_pending\{.*kind="effective"/)) === 4);
    expect(await rig.metric(second, /ledger_state\{.*state="paused"/)).toBe(1);
    expect(await rig.batches()).toEqual([]);
    await rig.pause(false);
    expect((await rig.untilVersions(1))[0]).toMatchObject({ version: 'backtalk-v1' });
  });

  it('keeps batches from closing while the data folder is full, and lets them close when it has room', async () => {
    await rigWith({ environment: { BACKTALK_RECIPE_SET: 'effective=2,effectiveMin=2' } });
    await rig.fillStorage(true);
    const trainer = await rig.startTrainer();
    await rig.correct(2);
    await until(async () => (await rig.metric(trainer, /turns_pending\{.*kind="effective"/)) === 2);
    expect(await rig.metric(trainer, /ledger_state\{.*state="storage_full"/)).toBe(1);
    await rig.pause(true);
    await rig.fillStorage(false);
    await until(async () => (await rig.metric(trainer, /ledger_state\{.*state="paused"/)) === 1);
    expect(await rig.batches()).toEqual([]);
    await rig.pause(false);
    await rig.untilVersions(1);
  });
});
