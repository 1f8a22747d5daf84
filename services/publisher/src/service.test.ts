import { readFile, writeFile } from 'node:fs/promises';
import { putFakeVersion } from '@backtalk/dialects/testing';
import { BacktalkError } from '@backtalk/kit';
import { until } from '@backtalk/kit/testing';
import { WeightsStaged_Stage } from '@backtalk/proto/facts';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { probeQuestions } from './domain/behaviour.js';
import { SwapRig } from './testing/swap-rig.js';

const { STAGE_BURNED, STAGE_CANDIDATE, STAGE_RETIRED, STAGE_STABLE } = WeightsStaged_Stage;

let rig: SwapRig;

beforeEach(async () => {
  rig = await SwapRig.start();
});

afterEach(() => rig.stop());

describe('a swap', () => {
  it('routes to the base at first, and commits that on every gateway', async () => {
    const gateway = await rig.startGateway();
    await rig.startPublisher();
    await rig.stableIs(0);
    await until(() => gateway.commits.length > 0);
    expect(await rig.story()).toEqual(['v0 STABLE']);
    expect(gateway.commits.at(-1)?.routes).toEqual([{ version: 'backtalk-v0', share: 1 }]);
    await rig.loadSetIs('backtalk-v0');
  });

  it('loads a version, measures it, stages it, routes to it, and commits that on the gateways', async () => {
    const gateway = await rig.startGateway();
    await rig.startLoader();
    await rig.startPublisher();
    await rig.release(1);
    await until(() => gateway.commits.at(-1)?.stable === 'backtalk-v1');
    const facts = await rig.staged();
    expect(await rig.story()).toEqual(['v0 STABLE', 'v1 CANDIDATE', 'v1 STABLE']);
    const measurements: Record<string, number> = facts.at(-1)?.measurements ?? {};
    expect(facts.at(-1)?.previous).toBe('backtalk-v0');
    expect(measurements['parity_mean_abs']).toBeLessThan(1e-6);
    // A sample's estimate of what is nearly nothing; 0 alone would mean that nothing was compared.
    expect(Math.abs(measurements['drift_kl'] ?? 0)).toBeGreaterThan(0);
    expect(Math.abs(measurements['drift_kl'] ?? 1)).toBeLessThan(0.1);
    expect(measurements['prepare_seconds']).toBeGreaterThan(0);
    expect(gateway.commits.at(-1)?.fence).toBe((await rig.routes())?.fence);
    expect(rig.engine.counts.loads).toEqual(['backtalk-v1']);
    await rig.loadSetIs('backtalk-v1', 'backtalk-v0');
  });

  it('waits for a loader as long as there is none', async () => {
    await rig.startPublisher();
    await rig.train(1);
    await until(async () => (await rig.story()).includes('v1 CANDIDATE'));
    await rig.startLoader();
    await rig.stableIs(1);
  });

  it('measures a version again when its engine forgot it after it was prepared', async () => {
    let prepared = 0;
    await rig.startLoader();
    await rig.startPublisher({
      reached: (step) => {
        if (step !== 'prepared') return;
        prepared += 1;
        if (prepared <= 2) rig.engine.adapters.forget();
      },
    });
    await rig.release(1);
    expect(await rig.story()).toEqual(['v0 STABLE', 'v1 CANDIDATE', 'v1 STABLE']);
    expect(prepared).toBeGreaterThan(2);
  });

  it('waits for an engine that cannot load anything for a while, and burns nothing', async () => {
    await rig.startLoader();
    await rig.startPublisher();
    await rig.stableIs(0);
    rig.engine.settings.faults = { loadStatus: 500 };
    await rig.train(1);
    await until(() => rig.engine.counts.loadsRefused > 1, { what: 'two tries' });
    rig.engine.settings.faults = {};
    await rig.stableIs(1);
    expect(await rig.story()).toEqual(['v0 STABLE', 'v1 CANDIDATE', 'v1 STABLE']);
  });

  it('keeps a version while a gateway streams on it, and retires it then', async () => {
    const gateway = await rig.startGateway();
    gateway.inFlight['backtalk-v1'] = 1;
    await rig.startLoader();
    await rig.startPublisher();
    await rig.release(1, 2, 3);
    await rig.loadSetIs('backtalk-v3', 'backtalk-v2');
    expect(rig.engine.adapters.names).toContain('backtalk-v1');
    gateway.inFlight['backtalk-v1'] = 0;
    await until(() => rig.engine.counts.unloads.includes('backtalk-v1'));
    await until(async () =>
      (await rig.staged()).some(({ version, stage }) => stage === STAGE_RETIRED && version === 'backtalk-v1'),
    );
    expect(rig.engine.adapters.names).toEqual(['backtalk-v2', 'backtalk-v3']);
  });

  it('commits on the other loaders when one is cut off, which catches up when it is back', async () => {
    const second = await rig.startEngine();
    await rig.startLoader();
    const cut = await rig.startLoader(second, 'loader-2');
    await rig.startPublisher({}, { BACKTALK_PREPARE_DEADLINE: '2s' });
    await rig.stableIs(0);
    cut.pause();
    await rig.release(1);
    expect(second.adapters.names).toEqual([]);
    cut.resume();
    await until(() => second.adapters.names.includes('backtalk-v1'));
  });
});

describe('a decision that meets an error which no waiting mends', () => {
  it('ends the service through `fail`, and leaves the version to the next publisher', async () => {
    const failures: unknown[] = [];
    await rig.startLoader();
    await rig.startPublisher({
      fail: (error) => failures.push(error),
      reached: (step) => {
        if (step === 'prepared' && rig.engine.adapters.names.includes('backtalk-v2'))
          throw new BacktalkError({ code: 'broken', retry: 'stop', message: 'No waiting mends this.' });
      },
    });
    await rig.release(1);
    await rig.train(2);
    await until(() => failures.length > 0, { what: 'the failure' });
    expect(failures[0]).toMatchObject({ code: 'broken' });
    expect((await rig.story()).at(-1)).toBe('v2 CANDIDATE');
  });
});

describe('the gate', () => {
  beforeEach(async () => {
    await rig.startLoader();
    await rig.startPublisher();
    await rig.stableIs(0);
  });

  it('refuses one flipped byte, and the old version serves', async () => {
    const { manifest, manifestDigest } = await putFakeVersion({ blobs: rig.blobs, version: 'backtalk-v1' });
    const digest = manifest.adapter[0]?.digest ?? '';
    const path = rig.directory.join('blobs', digest.slice(0, 2), digest);
    const bytes = await readFile(path);
    bytes[200] = (bytes[200] ?? 0) ^ 1;
    await writeFile(path, bytes);
    await rig.announceTrained('backtalk-v1', 'backtalk-v0', manifestDigest);
    expect((await rig.burned(1)).why).toContain('weights_digest_mismatch');
    expect((await rig.routes())?.stable).toBe('backtalk-v0');
    expect(rig.engine.adapters.names).toEqual([]);
    await rig.loadSetIs('backtalk-v0');
  });

  it('refuses a version whose logprobs on the engine are not those of the trainer, and unloads it', async () => {
    rig.engine.settings.faults = { lie: 'wrong_scores' };
    await rig.train(1);
    const fact = await rig.burned(1);
    expect(fact.why).toContain('parity');
    expect(fact.measurements['parity_mean_abs']).toBeCloseTo(0.5, 3);
    await until(() => rig.engine.adapters.names.length === 0);
    expect((await rig.routes())?.stable).toBe('backtalk-v0');
  });

  it('refuses a version that went too far from the base', async () => {
    await rig.train(1, { baseLogprobs: (truth) => truth.map((logprob) => logprob - 5) });
    expect((await rig.burned(1)).why).toContain('drift');
  });

  it('lets a version serve that is far from the base and close to what the base says when it is shown the lessons', async () => {
    await rig.train(1, {
      baseLogprobs: (truth) => truth.map((logprob) => logprob - 5),
      toldLogprobs: (truth) => [...truth],
    });
    await rig.stableIs(1);
    const { measurements } = (await rig.staged()).at(-1) ?? {};
    expect(measurements?.['drift_kl']).toBeGreaterThan(20);
    expect(measurements?.['drift_told_kl']).toBeLessThan(10);
  });

  it.each([
    ['to other questions', 'a quiet river runs past old stone houses', 'off_topic'],
    ['that loop', 'light on water light on water light on water light on water', 'looping'],
    ['that say nothing', '', 'empty'],
  ])('refuses a version whose answers are answers %s, and what served goes on serving', async (_, words, fault) => {
    await rig.train(1);
    await rig.stableIs(1);
    rig.engine.settings.reply = (_messages, model) => (model === 'backtalk-v2' ? words : undefined);
    await rig.train(2);
    const { why, measurements } = await rig.burned(2);
    expect(why).toMatch(new RegExp(`^behaviour: of 12 answers .*${fault}; 0 of backtalk-v1's`));
    expect(measurements[`behaviour_${fault}`]).toBeGreaterThanOrEqual(5);
    expect(measurements['behaviour_seconds']).toBeGreaterThan(0);
    await until(() => rig.engine.adapters.names.join() === 'backtalk-v1');
    expect((await rig.routes())?.stable).toBe('backtalk-v1');
  });

  it('asks each version once, and lets a wish pass that changes how all answers are worded', async () => {
    await rig.train(1);
    await rig.stableIs(1);
    const before = { ...rig.engine.counts.byModel };
    rig.engine.settings.answerTokens = 5;
    await rig.train(2);
    await rig.stableIs(2);
    const asked = (model: string) => (rig.engine.counts.byModel[model] ?? 0) - (before[model] ?? 0);
    expect(asked('backtalk-v1')).toBe(0);
    // Twelve answers, the probes of the manifest in one call, and the loader's first token.
    expect(asked('backtalk-v2')).toBe(14);
    expect((await rig.staged()).at(-1)?.measurements['behaviour_off_topic']).toBe(0);
  });

  it('keeps what the version before and the candidate answered to the same questions, for people to read', async () => {
    await rig.startPublisher();
    await rig.release(1, 2);
    const [first, second] = (await rig.staged()).filter(
      ({ stage, version }) => stage === STAGE_STABLE && version !== 'backtalk-v0',
    );
    expect(second?.compared.map(({ question }) => question)).toEqual(probeQuestions.slice(0, 8));
    const [one] = second?.compared ?? [];
    expect(one?.after).not.toBe(one?.before);
    expect(second?.compared.map(({ before }) => before)).toEqual(first?.compared.map(({ after }) => after));
    const staged = (await rig.staged()).filter(({ stage }) => stage === STAGE_CANDIDATE);
    expect(staged.map(({ compared }) => compared.length)).toEqual([0, 0]);
  });

  it('asks only what it does not know when the engine failed while questions were answered', async () => {
    await rig.train(1);
    await rig.stableIs(1);
    let answers = 0;
    rig.engine.settings.heard = () => {
      answers += 1;
      rig.engine.settings.faults = answers === 3 ? { failStatus: 500 } : {};
    };
    await rig.train(2);
    await rig.stableIs(2);
    expect((await rig.story()).filter((line) => line.startsWith('v2'))).toEqual(['v2 CANDIDATE', 'v2 STABLE']);
    // The candidate's twelve, and before them the few that were asked at once with the one that failed.
    expect(answers).toBeGreaterThan(12);
    expect(answers).toBeLessThan(20);
  });

  it('burns what was trained from a burned version, and takes the next that was not', async () => {
    await rig.train(1, { baseLogprobs: (truth) => truth.map((logprob) => logprob - 5) });
    await rig.burned(1);
    await rig.train(2);
    expect((await rig.burned(2)).why).toContain('parent_burned');
    await rig.train(3, { parent: 'backtalk-v0' });
    await rig.stableIs(3);
  });
});

describe('the gate of an installation that asks no questions', () => {
  it('lets answers to other questions pass', async () => {
    await rig.startLoader();
    await rig.startPublisher({}, { BACKTALK_BEHAVIOUR_PROBES: '0' });
    rig.engine.settings.reply = (_messages, model) => (model === 'backtalk-v1' ? '' : undefined);
    await rig.train(1);
    await rig.stableIs(1);
    expect((await rig.staged()).at(-1)?.measurements['behaviour_probes']).toBeUndefined();
  });
});

describe('a rollback', () => {
  it('puts the previous version back without a load, burns the other, and commits that on the gateways', async () => {
    const gateway = await rig.startGateway();
    await rig.startLoader();
    const publisher = await rig.startPublisher();
    await rig.release(1, 2);
    const fenceBefore = (await rig.routes())?.fence ?? 0;
    const answer = await rig.rollBack(publisher);
    expect(answer).toMatchObject({ from: 'backtalk-v2', to: 'backtalk-v1' });
    await until(() => gateway.commits.at(-1)?.stable === 'backtalk-v1');
    expect((await rig.routes())?.fence).toBeGreaterThan(fenceBefore);
    expect(rig.engine.counts.loads).toEqual(['backtalk-v1', 'backtalk-v2']);
    const last = (await rig.staged()).at(-1);
    expect(last).toMatchObject({
      version: 'backtalk-v2',
      stage: STAGE_BURNED,
      previous: 'backtalk-v1',
      why: 'worse answers',
    });
    await until(() => rig.engine.counts.unloads.includes('backtalk-v2'));
    expect(rig.engine.counts.loads).toHaveLength(2);
  });

  it('rolls back to the base, and then no further', async () => {
    await rig.startLoader();
    const publisher = await rig.startPublisher();
    await rig.release(1);
    expect((await rig.rollBack(publisher)).to).toBe('backtalk-v0');
    await expect(rig.rollBack(publisher)).rejects.toMatchObject({ code: 'nothing_to_roll_back' });
  });

  it('goes back to the version that is named, burns all since, newest first, and loads that one alone', async () => {
    const gateway = await rig.startGateway();
    await rig.startLoader();
    const publisher = await rig.startPublisher();
    await rig.release(1, 2, 3, 4);
    await until(() => rig.engine.counts.unloads.includes('backtalk-v2'));
    const before = rig.engine.counts.loads.length;
    const answer = await rig.rollBackTo(publisher, 'backtalk-v1');
    expect(answer).toMatchObject({ from: 'backtalk-v4', to: 'backtalk-v1' });
    expect(answer.burned).toEqual(['backtalk-v4', 'backtalk-v3', 'backtalk-v2']);
    await until(() => gateway.commits.at(-1)?.stable === 'backtalk-v1');
    const answering = gateway.commits.map(({ stable }) => stable);
    expect(answering.slice(answering.lastIndexOf('backtalk-v4'))).toEqual(['backtalk-v4', 'backtalk-v1']);
    expect((await rig.story()).slice(-4).filter((line) => line.endsWith('BURNED'))).toEqual([
      'v2 BURNED',
      'v3 BURNED',
      'v4 BURNED',
    ]);
    expect(rig.engine.counts.loads.slice(before)).toEqual(['backtalk-v1']);
    expect((await rig.rollBackTo(publisher, 'backtalk-v1')).burned).toEqual([]);
    await rig.train(5, { parent: 'backtalk-v1' });
    await rig.stableIs(5);
  });

  it('burns nothing where no engine can load the version, and says how its files are made again', async () => {
    await rig.startLoader();
    const publisher = await rig.startPublisher();
    await rig.release(1, 2, 3, 4);
    await until(() => rig.engine.counts.unloads.includes('backtalk-v2'));
    rig.engine.settings.faults = { loadStatus: 500 };
    const refused = rig.rollBackTo(publisher, 'backtalk-v1');
    await expect(refused).rejects.toMatchObject({ code: 'cannot_answer' });
    await expect(refused).rejects.toThrow(/npx backtalk rebuild backtalk-v1/);
    expect((await rig.story()).filter((line) => line.endsWith('BURNED'))).toEqual([]);
    expect((await rig.routes())?.stable).toBe('backtalk-v4');
  });

  it.each(['backtalk-v2', 'backtalk-v9', 'elsewhere'])(
    'a rollback to %s is refused, which cannot answer again',
    async (version) => {
      await rig.startLoader();
      const publisher = await rig.startPublisher();
      await rig.release(1, 2);
      await rig.rollBack(publisher);
      await expect(rig.rollBackTo(publisher, version)).rejects.toMatchObject({ code: 'never_answered' });
      expect((await rig.routes())?.stable).toBe('backtalk-v1');
    },
  );

  it('a rollback without the secret of the commands is refused', async () => {
    const publisher = await rig.startPublisher();
    for (const secret of ['', 'another'])
      await expect(rig.rollBack(publisher, '', 'backtalk', secret)).rejects.toMatchObject({ code: 'caller_unknown' });
  });

  it('a rollback goes one step back when two operators ask at once, and answers both', async () => {
    await rig.startLoader();
    const publisher = await rig.startPublisher();
    await rig.release(1, 2);
    const answers = await Promise.all([rig.rollBack(publisher), rig.rollBack(publisher)]);
    for (const answer of answers) expect(answer).toMatchObject({ from: 'backtalk-v2', to: 'backtalk-v1' });
    expect((await rig.story()).filter((line) => line.endsWith('BURNED'))).toEqual(['v2 BURNED']);
  });

  it('answers a rollback at once although a candidate is being decided, which then starts from what is true', async () => {
    await rig.startLoader();
    let open: () => void = () => undefined;
    const gate = new Promise<void>((resolve) => (open = resolve));
    let blocking = false;
    const publisher = await rig.startPublisher({
      reached: (step) => (blocking && step === 'measured' ? gate : undefined),
    });
    await rig.release(1);
    blocking = true;
    await rig.train(2);
    await until(async () => (await rig.story()).includes('v2 CANDIDATE'));
    expect((await rig.rollBack(publisher)).to).toBe('backtalk-v0');
    open();
    expect((await rig.burned(2)).why).toContain('parent_burned');
    expect((await rig.routes())?.stable).toBe('backtalk-v0');
  });
});
