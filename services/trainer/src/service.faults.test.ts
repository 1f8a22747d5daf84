import { randomBytes } from 'node:crypto';

import { until } from '@backtalk/kit/testing';
import { BatchClosed, WeightsStaged_Stage } from '@backtalk/proto/facts';
import { afterEach, describe, expect, it } from 'vitest';

import { fakeWorkerErrors } from './testing/fake-worker-errors.js';
import { TrainerRig, type RigOptions } from './testing/trainer-rig.js';

const smallBatch = { BACKTALK_RECIPE_SET: 'effective=2,effectiveMin=2' };
let rig: TrainerRig;

async function rigWith(options: RigOptions = { environment: smallBatch }): Promise<TrainerRig> {
  rig = await TrainerRig.start(options);
  return rig;
}

afterEach(async () => {
  await rig.stop();
});

const never = (): Promise<void> => new Promise(() => undefined);

/** Every turn is in one place only: taken once, or settled once. */
function everyTurnOnce(batches: readonly BatchClosed[]): string[] {
  const turns = batches
    .filter(({ why }) => why !== 'step_failed' && why !== 'burned_parent')
    .flatMap(({ samples, settled }) => [...samples, ...settled]);
  const ids = turns.map(({ turn }) => turn);
  expect(new Set(ids).size).toBe(ids.length);
  return ids;
}

describe('a crash between batch.closed and weights.trained', () => {
  it('repeats the same request byte for byte, even with another configuration', async () => {
    await rigWith();
    rig.worker.plot = never;
    const first = await rig.startTrainer();
    await rig.correct(2);
    await until(() => rig.worker.steps.length === 1, { what: 'The first try' });
    await rig.stopTrainer(first);
    rig.worker.plot = () => undefined;
    await rig.startTrainer('two', {
      BACKTALK_RECIPE_SET: 'effective=2,effectiveMin=2,learningRate=0.01,meanAnswerTokens=99',
    });
    const versions = await rig.untilVersions(1);
    expect(rig.worker.steps).toHaveLength(2);
    expect(Buffer.from(rig.worker.steps[1]?.bytes ?? [])).toEqual(Buffer.from(rig.worker.steps[0]?.bytes ?? []));
    expect(versions).toHaveLength(1);
    expect(await rig.batches()).toHaveLength(1);
  });

  it('takes the same samples, whatever arrives in between', async () => {
    await rigWith();
    rig.worker.plot = never;
    const first = await rig.startTrainer();
    const taken = await rig.correct(2, { name: 'taken' });
    await until(() => rig.worker.steps.length === 1);
    await rig.correct(3, { name: 'later' });
    await rig.judge({ turn: taken[0] ?? '', revision: 1, verdict: 1, hint: 'Write in French.' });
    await rig.stopTrainer(first);
    rig.worker.plot = () => undefined;
    await rig.startTrainer('two');
    await rig.untilVersions(1);
    expect(Buffer.from(rig.worker.steps[1]?.bytes ?? [])).toEqual(Buffer.from(rig.worker.steps[0]?.bytes ?? []));
    await rig.stage('backtalk-v1', WeightsStaged_Stage.STAGE_STABLE);
    const [, second] = await rig.untilBatches(2);
    expect(second?.samples.map(({ turn }) => turn)).toEqual(['later0', 'later1']);
  });
});

describe('the training worker', () => {
  it('a batch counts once though the training worker dies in mid-step', async () => {
    await rigWith();
    rig.worker.plot = never;
    const trainer = await rig.startTrainer();
    const turns = await rig.correct(2);
    await until(() => rig.worker.steps.length === 1);
    await rig.worker.kill();
    await until(async () => (await rig.metric(trainer, /steps_total\{.*outcome="interrupted"/)) >= 1, {
      what: 'The interrupted step',
    });
    rig.worker.plot = () => undefined;
    await rig.worker.start();
    const versions = await rig.untilVersions(1);
    expect(versions).toHaveLength(1);
    expect(everyTurnOnce(await rig.batches())).toEqual(turns);
    expect(Buffer.from(rig.worker.steps[1]?.bytes ?? [])).toEqual(Buffer.from(rig.worker.steps[0]?.bytes ?? []));
  });

  it('the trainer waits for an absent training worker as long as it takes, and says so in a metric', async () => {
    await rigWith();
    await rig.worker.kill();
    const trainer = await rig.startTrainer();
    await rig.correct(2);
    await rig.untilBatches(1);
    await until(async () => (await rig.metric(trainer, /steps_total\{.*outcome="interrupted"/)) >= 4, {
      what: 'Four tries',
    });
    expect(await rig.versions()).toEqual([]);
    await rig.worker.start();
    await rig.untilVersions(1);
    expect(rig.worker.steps).toHaveLength(1);
  });

  it('the trainer gives the parent’s files again to a training worker that forgot its blobs', async () => {
    await rigWith();
    await rig.startTrainer();
    await rig.correct(2, { name: 'first' });
    await rig.untilVersions(1);
    await rig.worker.kill();
    await rig.worker.start();
    await rig.stage('backtalk-v1', WeightsStaged_Stage.STAGE_STABLE);
    await rig.correct(2, { name: 'second', version: 'backtalk-v1' });
    expect((await rig.untilVersions(2))[1]).toMatchObject({ parent: 'backtalk-v1' });
  });
});

describe('a step that fails for what is in the batch', () => {
  it('settles its samples by name, leaves a gap in the versions, and learning goes on', async () => {
    await rigWith();
    rig.worker.plot = ({ request }) => {
      if (request.version === 'backtalk-v1') throw fakeWorkerErrors.notFinite();
    };
    const first = await rig.startTrainer();
    await rig.correct(2, { name: 'bad' });
    const [, given] = await rig.untilBatches(2);
    expect(given).toMatchObject({ number: 2, why: 'step_failed', version: '' });
    expect(given?.settled.map(({ turn, reason }) => [turn, reason])).toEqual([
      ['bad0', 'step_failed'],
      ['bad1', 'step_failed'],
    ]);
    await rig.correct(2, { name: 'good' });
    const versions = await rig.untilVersions(1);
    expect(versions).toMatchObject([{ version: 'backtalk-v2', parent: 'backtalk-v0', batch: 3 }]);
    everyTurnOnce(await rig.batches());
    const second = await rig.startTrainer('two');
    await rig.stopTrainer(first);
    await until(async () => (await rig.metric(second, /^backtalk_trainer_version_number\{/)) === 2, {
      what: 'The number of the newest version, over the gap',
    });
  });

  it('a step is given up after ten failures when the worker never says why', async () => {
    await rigWith({ environment: { ...smallBatch, BACKTALK_STEP_RETRY_MAX: '10ms' } });
    rig.worker.plot = () => {
      throw fakeWorkerErrors.outOfMemory();
    };
    await rig.startTrainer();
    await rig.correct(2);
    const [, given] = await rig.untilBatches(2);
    expect(given).toMatchObject({ why: 'step_failed' });
    expect(rig.worker.steps).toHaveLength(10);
  });
});

describe('a batch that cannot be trained', () => {
  it('a batch is given up after ten tries, counted over restarts, and learning goes on', async () => {
    await rigWith({ environment: { ...smallBatch, BACKTALK_STEP_RETRY_MAX: '10ms' } });
    rig.worker.plot = ({ request }) => {
      if (request.version === 'backtalk-v1') throw fakeWorkerErrors.outOfMemory();
    };
    const first = await rig.startTrainer();
    await rig.correct(2, { name: 'bad' });
    await until(() => rig.worker.steps.length >= 5, { what: 'Five tries' });
    await rig.stopTrainer(first);
    const second = await rig.startTrainer('two');
    const [, given] = await rig.untilBatches(2);
    expect(given).toMatchObject({ why: 'step_failed', detail: 'out_of_memory' });
    // A try that is cut off by the stop counts for nothing.
    expect(rig.worker.steps.length).toBeLessThanOrEqual(11);
    expect(await rig.metric(second, /batches_abandoned_total\{.*reason="step_failed"/)).toBe(1);
    await rig.correct(2, { name: 'good' });
    expect(await rig.untilVersions(1)).toMatchObject([{ version: 'backtalk-v2', batch: 3 }]);
  });

  it('a batch is given up when each of its tries ended the process', async () => {
    await rigWith();
    await rig.worker.kill();
    const first = await rig.startTrainer();
    await rig.correct(2);
    await rig.untilBatches(1);
    await rig.stopTrainer(first);
    await rig.haveTried(1, 10);
    await rig.worker.start();
    await rig.startTrainer('two');
    const [, given] = await rig.untilBatches(2);
    expect(given).toMatchObject({ why: 'step_failed', detail: 'never_ended' });
    expect(rig.worker.steps).toEqual([]);
  });

  it('a batch is given up by an operator while its step runs, and its version’s name is not used again', async () => {
    await rigWith();
    rig.worker.plot = never;
    const trainer = await rig.startTrainer();
    await rig.correct(2, { name: 'bad' });
    await until(() => rig.worker.steps.length === 1, { what: 'The step' });
    await rig.abandon(1);
    const [, given] = await rig.untilBatches(2);
    expect(given).toMatchObject({ number: 2, why: 'abandoned', samples: [] });
    expect(given?.settled.map(({ turn, reason }) => [turn, reason])).toEqual([
      ['bad0', 'abandoned'],
      ['bad1', 'abandoned'],
    ]);
    expect(await rig.metric(trainer, /batches_abandoned_total\{.*reason="abandoned"/)).toBe(1);
    rig.worker.plot = () => undefined;
    await rig.correct(2, { name: 'good' });
    expect(await rig.untilVersions(1)).toMatchObject([{ version: 'backtalk-v2', batch: 3 }]);
  });

  it('a batch is given up by an operator whose worker is away', async () => {
    await rigWith();
    await rig.worker.kill();
    await rig.startTrainer();
    await rig.correct(2);
    await rig.untilBatches(1);
    await rig.abandon(1);
    expect((await rig.untilBatches(2))[1]).toMatchObject({ why: 'abandoned' });
  });
});

describe('a sample’s size', () => {
  const large = (bytes: number): string => JSON.stringify([{ role: 'user', content: 'x'.repeat(bytes) }]);
  const structure = `[${Array(2_000_000).fill('{}').join(',')}]`;

  it.each([
    ['in its messages', { messages: large(3_000_000) }],
    ['in its tools, of many small parts', { tools: structure }],
  ])('settles a sample that is too large %s, and closes the batch without it', async (_, shape) => {
    await rigWith();
    const trainer = await rig.startTrainer();
    await rig.correct(1, { name: 'huge', ...shape });
    // It takes longer to read than the two that follow it, whose batch does not wait for what has not been read.
    const effective = () => rig.metric(trainer, /turns_pending\{.*kind="effective"/);
    const settled = () => rig.metric(trainer, /turns_pending\{.*kind="settled"/);
    await until(async () => (await effective()) + (await settled()) === 1);
    await rig.correct(2, { name: 'good' });
    await rig.untilVersions(1);
    const [batch] = await rig.batches();
    expect(batch?.samples.map(({ turn }) => turn)).toEqual(['good0', 'good1']);
    expect(batch?.settled).toMatchObject([{ turn: 'huge0', reason: 'too_large' }]);
    expect(await rig.metric(trainer, /turns_settled_total\{.*reason="too_large"/)).toBe(1);
  });

  it('leaves to the next batch what one request to the worker cannot hold', async () => {
    // No engine renders messages as long as these; the step is taken all the same.
    const recipe = 'effective=20,effectiveMin=1,waitMs=3000,templateMismatchShareMax=1';
    await rigWith({ environment: { BACKTALK_RECIPE_SET: recipe } });
    await rig.startTrainer();
    await rig.correct(20, { messages: large(2_000_000) });
    await rig.untilVersions(1);
    await rig.stage('backtalk-v1', WeightsStaged_Stage.STAGE_STABLE);
    await rig.untilVersions(2);
    const batches = await rig.batches();
    expect(batches.map(({ samples }) => samples.length)).toEqual([16, 4]);
    everyTurnOnce(batches);
    expect(Math.max(...rig.worker.steps.map(({ bytes }) => bytes.byteLength))).toBeLessThan(40_000_000);
  });

  it('leaves out of a batch that is closed already what is too large, and trains on the rest', async () => {
    await rigWith();
    await rig.pause(true);
    await rig.startTrainer();
    const ids = { tenant: 'tenant0', user: 'user0', effective: true };
    const samples = ['huge0', 'good0'].map((turn) => ({ ...ids, turn }));
    await rig.correct(1, { name: 'huge', messages: large(3_000_000) });
    await rig.correct(1, { name: 'good' });
    const shape = { policy: 'backtalk', number: 1, parent: 'backtalk-v0', version: 'backtalk-v1', why: 'full' };
    await rig.closeElsewhere(BatchClosed.fromPartial({ ...shape, samples, configDigest: await rig.keepPlan() }));
    await rig.startTrainer('two');
    await rig.correct(1, { name: 'later' });
    await rig.pause(false);
    const [version] = await rig.untilVersions(1);
    expect(version?.report?.samples.map(({ turn, dropped }) => [turn, dropped])).toEqual([
      ['good0', ''],
      ['huge0', 'too_large'],
    ]);
  });
});

describe('two trainers', () => {
  it('one of two trainers leads; when it goes, the other finishes what it began, once', async () => {
    await rigWith();
    rig.worker.plot = never;
    const one = await rig.startTrainer('one');
    const two = await rig.startTrainer('two');
    const turns = await rig.correct(2);
    await until(() => rig.worker.steps.length === 1);
    expect(await rig.metric(one, /^backtalk_trainer_leader_active /)).toBe(1);
    expect(await rig.metric(two, /^backtalk_trainer_leader_active /)).toBe(0);
    rig.worker.plot = () => undefined;
    await rig.stopTrainer(one);
    const versions = await rig.untilVersions(1);
    expect(versions).toHaveLength(1);
    expect(rig.worker.steps).toHaveLength(2);
    expect(everyTurnOnce(await rig.batches())).toEqual(turns);
  });

  it('one of two trainers that close the same batch wins; the other reads the log again and goes on', async () => {
    await rigWith();
    const trainer = await rig.startTrainer();
    await rig.correct(1, { name: 'first' });
    await until(async () => (await rig.metric(trainer, /turns_pending\{.*kind="effective"/)) === 1);
    const settled = [{ turn: 'first0', tenant: 'tenant0', user: 'user0', reason: 'nothing_to_learn' }];
    await rig.closeElsewhere(BatchClosed.fromPartial({ policy: 'backtalk', number: 1, settled, why: 'settled' }));
    await rig.correct(3, { name: 'second' });
    const [version] = await rig.untilVersions(1);
    const batches = await rig.batches();
    expect(batches.map(({ number }) => number)).toEqual([1, 2]);
    expect(batches[1]?.samples.map(({ turn }) => turn)).toEqual(['second0', 'second1']);
    expect(version).toMatchObject({ batch: 2 });
    everyTurnOnce(batches);
    await until(async () => (await rig.openFacts()) === 1, { what: 'The ack of what the other trainer has settled' });
  });
});

describe('the broker', () => {
  it('a broker that is killed and comes back loses nothing, and nothing is taken twice', async () => {
    await rigWith();
    const trainer = await rig.startTrainer();
    await rig.correct(1, { name: 'before' });
    await until(async () => (await rig.metric(trainer, /turns_pending\{.*kind="effective"/)) === 1);
    await rig.nats.restart();
    await until(async () => {
      await rig.correct(1, { name: 'after' });
      return true;
    });
    await rig.untilVersions(1);
    expect(everyTurnOnce(await rig.batches()).sort()).toEqual(['after0', 'before0']);
    await until(async () => (await rig.openFacts()) === 0);
  });
});

describe('what cannot be', () => {
  it('a judged turn that the log has lost is settled as missing', async () => {
    await rigWith({ environment: { BACKTALK_RECIPE_SET: 'settleAtTurns=1' } });
    await rig.startTrainer();
    await rig.judge({ turn: 'lost' });
    const [batch] = await rig.untilBatches(1);
    expect(batch?.settled).toMatchObject([{ turn: 'lost', reason: 'missing' }]);
  });

  it.each(['loraRank', 'loraAlpha'])(
    'another %s than the parent’s stops the trainer before a batch is closed',
    async (name) => {
      await rigWith();
      const first = await rig.startTrainer();
      await rig.correct(2, { name: 'first' });
      await rig.untilVersions(1);
      await rig.stage('backtalk-v1', WeightsStaged_Stage.STAGE_STABLE);
      await rig.stopTrainer(first);
      await rig.startTrainer('two', { BACKTALK_RECIPE_SET: `effective=2,effectiveMin=2,${name}=24` });
      await rig.correct(2, { name: 'second' });
      await until(() => rig.failures.length > 0);
      expect(rig.failures).toMatchObject([{ code: 'rank_changed', retry: 'stop' }]);
      expect(await rig.batches()).toHaveLength(1);
    },
  );
});

describe('files of old versions', () => {
  it('files of old versions are swept when nothing refers to them any more', async () => {
    await rigWith({ environment: { ...smallBatch, BACKTALK_SWEEP_EVERY: '1s', BACKTALK_SWEEP_GRACE: '0ms' } });
    const trainer = await rig.startTrainer();
    for (let n = 1; n <= 5; n += 1) {
      await rig.correct(2, { name: `b${n}x` });
      await rig.untilVersions(n);
      await rig.stage(`backtalk-v${n}`, WeightsStaged_Stage.STAGE_STABLE);
    }
    await until(async () => (await rig.metric(trainer, /files_swept_total\{/)) === 2, {
      what: 'The sweep of two optimiser states',
    });
  });

  it('payloads of facts are swept when the log holds their facts no more', async () => {
    await rigWith({ environment: { ...smallBatch, BACKTALK_SWEEP_EVERY: '1s', BACKTALK_SWEEP_GRACE: '0ms' } });
    const trainer = await rig.startTrainer();
    const noise = JSON.stringify([{ role: 'user', content: randomBytes(1_000_000).toString('hex') }]);
    await rig.say({ turn: 'large', messages: noise });
    await until(async () => (await rig.metric(trainer, /^backtalk_trainer_payload_bytes /)) > 900_000, {
      what: 'The payload, counted',
    });
    await rig.trimTurns();
    await until(async () => (await rig.metric(trainer, /^backtalk_trainer_payloads_swept_total /)) === 1, {
      what: 'The sweep of the payload',
    });
  });
});
