import { until } from '@backtalk/kit/testing';
import { WeightsStaged_Stage } from '@backtalk/proto/facts';
import type { TrainRequest } from '@backtalk/proto/training';
import { afterEach, describe, expect, it } from 'vitest';

import { TrainerRig } from './testing/trainer-rig.js';
import type { TurnShape } from './testing/turns.js';

const { STAGE_STABLE: STABLE, STAGE_BURNED: BURNED } = WeightsStaged_Stage;
const environment = { BACKTALK_RECIPE_SET: 'effective=2,effectiveMin=2,settleAtTurns=1' };
let rig: TrainerRig;

afterEach(async () => {
  await rig.stop();
});

const first: TurnShape[] = [
  { turn: 'one', verdict: -1, hint: 'Use tables.' },
  { turn: 'two', verdict: 1 },
];
const second: TurnShape[] = [
  { turn: 'three', verdict: -1, hint: 'Use colours.' },
  { turn: 'four', verdict: -1, hint: 'Count the rows.' },
];

async function withVersions(): Promise<TrainRequest[]> {
  rig = await TrainerRig.start({ environment });
  await rig.startTrainer();
  for (const [at, turns] of [first, second].entries()) {
    for (const turn of turns) await rig.say(turn);
    await rig.untilVersions(at + 1);
    await rig.stage(`backtalk-v${String(at + 1)}`, STABLE);
  }
  return rig.worker.steps.map(({ request }) => request);
}

/** The steps of both versions with those judgements. */
async function replayed(judgements: readonly TurnShape[]): Promise<TrainRequest[]> {
  for (const shape of judgements) await rig.rejudge(shape, 'asked');
  const before = rig.worker.steps.length;
  await rig.replay('backtalk-v1', 'backtalk-v2', 'one', '', 'asked');
  await rig.untilRebuilt('one');
  return rig.worker.steps.slice(before).map(({ request }) => request);
}

const rewards = ({ samples }: Pick<TrainRequest, 'samples'>) => samples.map(({ turn, advantage }) => [turn, advantage]);

describe('a replay with the judge of now', () => {
  it('a judge that says the same again makes the same versions, byte for byte', async () => {
    const steps = await withVersions();
    const again = await replayed([...first, ...second]);
    const { state, replayed: rows } = await rig.untilRebuilt('one');
    expect({ state, of: rows.map(({ rejudged }) => rejudged) }).toEqual({
      state: 'equal',
      of: Array(2).fill({ turns: 2, verdicts: 0, hints: 0, refused: 0 }),
    });
    expect(again.map(({ samples }) => samples)).toEqual(steps.map(({ samples }) => samples));
  });

  it('other verdicts are other rewards, there and in later versions, whose baselines they move', async () => {
    const steps = await withVersions();
    expect(steps.map(rewards)).toEqual([
      [
        ['one', -1],
        ['two', 1],
      ],
      [
        ['three', -1],
        ['four', -1],
      ],
    ]);
    const again = await replayed([{ ...first[0], turn: 'one', verdict: 1 }, ...first.slice(1), ...second]);
    expect(again.map(rewards)).toEqual([
      [
        ['one', 1],
        ['two', 1],
      ],
      [
        ['three', -2],
        ['four', -2],
      ],
    ]);
    const { state, replayed: rows } = await rig.untilRebuilt('one');
    expect(state).toBe('different');
    expect(rows.map(({ rejudged }) => rejudged?.verdicts)).toEqual([1, 0]);
  });

  it('rewards of a row that begins in the middle are reckoned from the baselines of the log, and from the version answered', async () => {
    rig = await TrainerRig.start({
      environment: { BACKTALK_RECIPE_SET: `${environment.BACKTALK_RECIPE_SET},rewardVersions=1` },
    });
    await rig.startTrainer();
    const turns = [
      first.map((turn) => ({ ...turn, verdict: -1 })),
      [
        { turn: 'three', verdict: 1 },
        { ...second[1], turn: 'four', version: 'backtalk-v1' },
      ],
      second.map((turn) => ({ ...turn, turn: `${turn.turn}-late`, version: 'backtalk-v2' })),
    ];
    for (const [at, some] of turns.entries()) {
      for (const turn of some) await rig.say(turn);
      await rig.untilVersions(at + 1);
      await rig.stage(`backtalk-v${String(at + 1)}`, STABLE);
    }
    // Other words are no other verdicts.
    for (const shape of turns.flat()) await rig.rejudge({ ...shape, hint: `${shape.turn}.` }, 'asked');
    const before = rig.worker.steps.length;
    await rig.replay('backtalk-v2', 'backtalk-v3', 'one', '', 'asked');
    await rig.untilRebuilt('one');
    const given = rig.worker.steps.map(({ request }) => rewards(request).map(([, advantage]) => advantage));
    expect(given.slice(before - 2, before)).toEqual([
      [2, 0],
      [-0.5, -0.5],
    ]);
    expect(given.slice(before)).toEqual(given.slice(before - 2, before));
  });

  it('what was said of versions that came to nothing has moved baselines, and goes on doing so', async () => {
    rig = await TrainerRig.start({ environment });
    await rig.startTrainer();
    const turns = [first, second, ['five', 'six'].map((turn) => ({ turn, hint: `${turn}.`, version: 'backtalk-v1' }))];
    const fates = [STABLE, BURNED, STABLE];
    for (const [at, some] of turns.entries()) {
      for (const turn of some) await rig.say({ ...turn, verdict: -1 });
      await rig.untilVersions(at + 1);
      await rig.stage(`backtalk-v${String(at + 1)}`, fates[at] ?? STABLE);
    }
    for (const { turn } of first) await rig.rejudge({ turn, verdict: 1 }, 'asked');
    for (const shape of turns[2] ?? []) await rig.rejudge({ ...shape, verdict: -1 }, 'asked');
    const before = rig.worker.steps.length;
    await rig.replay('backtalk-v1', 'backtalk-v3', 'one', '', 'asked');
    expect((await rig.untilRebuilt('one')).replayed.map(({ version }) => version)).toEqual([
      'backtalk-v1',
      'backtalk-v3',
    ]);
    const steps = rig.worker.steps.map(({ request }) => rewards(request).map(([, advantage]) => advantage));
    // Two verdicts of +1 in place of -1, then two of -1: 0.
    expect(steps[2]).toEqual([0, 0]);
    expect(steps.slice(before)).toEqual([
      [1, 1],
      [-1, -1],
    ]);
  });

  it('a row goes on where the batch before it is gone, with someone who was forgotten, from the one before that', async () => {
    rig = await TrainerRig.start({ environment });
    await rig.startTrainer();
    for (const [at, name] of ['a', 'b', 'c'].entries()) {
      await rig.correct(2, { name, hint: `Use ${name}.` });
      await rig.untilVersions(at + 1);
      await rig.stage(`backtalk-v${String(at + 1)}`, STABLE);
    }
    for (const turn of ['c0', 'c1']) await rig.rejudge({ turn, verdict: 1 }, 'asked');
    await rig.loseBatch(2);
    await rig.replay('backtalk-v3', 'backtalk-v3', 'one', '', 'asked');
    const { state, replayed: rows } = await rig.untilRebuilt('one');
    expect({ state, of: rows.map(({ rejudged }) => rejudged?.verdicts) }).toEqual({ state: 'different', of: [2] });
    expect(rewards(rig.worker.steps.at(-1)?.request ?? { samples: [] })).toEqual([
      ['c0', 2],
      ['c1', 2],
    ]);
  });

  it('other hints are shown to the teacher, and none where the judge of now hears none', async () => {
    await withVersions();
    const judgements = [
      { turn: 'one', verdict: -1, hint: 'Use lists.' },
      { turn: 'two', verdict: 1 },
      { turn: 'three', verdict: -1 },
      { turn: 'four', verdict: -1, hint: 'Count the rows.' },
    ];
    await replayed(judgements);
    const { replayed: rows } = await rig.untilRebuilt('one');
    expect(rows.map(({ rejudged }) => rejudged)).toEqual(
      Array(2).fill({ turns: 2, verdicts: 0, hints: 1, refused: 0 }),
    );
    expect(rig.shown()).toEqual([
      ['three', []],
      ['four', ['Count the rows.']],
    ]);
  });

  it('what a person said of an answer themselves stays, and so does what is not judged again', async () => {
    rig = await TrainerRig.start({ environment });
    const trainer = await rig.startTrainer();
    const [one, two] = [
      { turn: 'one', verdict: -1 },
      { turn: 'two', verdict: -1 },
    ];
    await rig.say(two);
    await rig.judge({ ...two, verdict: 1, revision: 1 });
    await until(async () => (await rig.metric(trainer, /turns_judged_total\{.*outcome="pending"/)) === 2);
    await rig.say(one);
    await rig.untilVersions(1);
    await rig.stage('backtalk-v1', STABLE);
    const [step] = rig.worker.steps;
    expect(step?.request.samples.map(({ advantage }) => advantage)).toEqual([1, -1]);
    await rig.rejudge({ ...one, verdict: 1 }, 'asked', 'opted_out');
    await rig.rejudge({ ...two, verdict: -1 }, 'asked');
    await rig.replay('backtalk-v1', 'backtalk-v1', 'one', '', 'asked');
    const { state, replayed: rows } = await rig.untilRebuilt('one');
    expect(state).toBe('equal');
    expect(rows[0]?.rejudged).toEqual({ turns: 1, verdicts: 0, hints: 0, refused: 1 });
  });

  it('a turn that the judge was not asked about ends the replay, by its name', async () => {
    await withVersions();
    await replayed(first);
    const { state, detail, replayed: rows } = await rig.untilRebuilt('one');
    expect({ state, of: rows.length }).toEqual({ state: 'failed', of: 1 });
    expect(detail).toMatch(/backtalk-v2 was trained on three, .* npx backtalk replay --judge/);
  });

  it('judgements of another asking say nothing', async () => {
    await withVersions();
    for (const shape of [...first, ...second]) await rig.rejudge(shape, 'other');
    await replayed([]);
    expect(await rig.untilRebuilt('one')).toMatchObject({ state: 'failed', replayed: [] });
  });
});
