import { StepFigures, TurnJudged_Source, UserBaseline, Vote } from '@backtalk/proto/facts';
import { describe, expect, it } from 'vitest';

import { candidate, learningContext, recipeWith } from '../testing/candidates.js';
import type { TurnShape } from '../testing/turns.js';
import type { Candidate } from './candidate.js';
import type { Recipe } from './recipe.js';
import { figuresAfter, stepsAmong, type RewardedStep } from './step-rewards.js';
import { weighTurns } from './weigh-turns.js';

const hour = 3_600_000;

interface Told {
  readonly attempt: string;
  readonly step?: number;
  readonly score?: number;
  /** Of its group, as the outcome says. */
  readonly attempts?: number;
  /** Of its attempt. */
  readonly turns?: number;
  readonly atMs?: number;
  readonly shape?: Partial<TurnShape>;
}

function stepOf({ attempt, step = 0, score, attempts = 2, turns = 1, atMs = 0, shape = {} }: Told): Candidate {
  const { judged = {}, ...rest } = shape;
  const outcome = score === undefined ? undefined : { score, attempts, turns };
  const turn = `${attempt}.${String(step)}`;
  const told = { turn, session: attempt, group: 'g', step, verdict: 0, ...rest };
  return candidate({ ...told, judged: { ...judged, outcome } }, 1, atMs);
}

function stepsIn(
  told: readonly Told[],
  context: Parameters<typeof learningContext>[0] = {},
  recipe: Partial<Recipe> = {},
) {
  return stepsAmong(told.map(stepOf), learningContext(context), recipeWith(recipe));
}

function advantages(
  told: readonly Told[],
  context: Parameters<typeof learningContext>[0] = {},
  recipe: Partial<Recipe> = {},
) {
  const steps = [...stepsIn(told, context, recipe)];
  return Object.fromEntries(steps.map(([turn, step]) => [turn, step.kind === 'rewarded' ? step.advantage : step.kind]));
}

describe('step rewards', () => {
  it('rewards are standardised over the same step of all attempts of a group', () => {
    // By hand: rewards 1, 0, 0, -1 have mean 0 and deviation √.5; 1 and 0 have mean .5 and deviation .5.
    const told = [
      { attempt: 'a', score: 1, attempts: 4, turns: 2 },
      { attempt: 'a', step: 1, score: 1, attempts: 4, turns: 2 },
      { attempt: 'b', score: 0, attempts: 4, turns: 2 },
      { attempt: 'b', step: 1, score: 0, attempts: 4, turns: 2 },
      { attempt: 'c', score: 0, attempts: 4 },
      { attempt: 'd', score: -1, attempts: 4 },
    ];
    const found = advantages(told);
    expect(found['a.0']).toBeCloseTo(Math.SQRT2, 12);
    expect(found['b.0']).toBeCloseTo(0, 12);
    expect(found['d.0']).toBeCloseTo(-Math.SQRT2, 12);
    expect(found['a.1']).toBeCloseTo(1, 12);
    expect(found['b.1']).toBeCloseTo(-1, 12);
  });

  it('a reward is the outcome and the mean of the votes, or the outcome alone', () => {
    const vote = (verdict: number, valid = true) => Vote.fromPartial({ verdict, valid });
    const votes = [vote(1), vote(1), vote(-1), vote(-1, false)];
    const judged = { votes, verdict: 1, source: TurnJudged_Source.SOURCE_VOTES };
    const told = [
      { attempt: 'voted', score: 0.5, shape: { judged } },
      {
        attempt: 'outranked',
        score: 0.5,
        shape: { judged: { ...judged, verdict: -1, source: TurnJudged_Source.SOURCE_EVIDENCE } },
      },
    ];
    const rewards = (recipe: Partial<Recipe>) =>
      [...stepsIn(told, {}, recipe).values()].map((step) =>
        step.kind === 'rewarded' ? step.attempt.reward : step.kind,
      );
    expect(rewards({})).toEqual([0.5 + 1 / 3, -0.5]);
    expect(rewards({ stepReward: 'outcome' })).toEqual([0.5, 0.5]);
  });

  it('a step without spread teaches nothing, and one alone is measured by what its person had before', () => {
    expect(
      advantages([
        { attempt: 'a', score: 1 },
        { attempt: 'b', score: 1 },
      ]),
    ).toEqual({ 'a.0': 0, 'b.0': 0 });
    const baselines = [UserBaseline.fromPartial({ user: 'user0', stepMean: 0.25, mean: -1 })];
    const alone = [{ attempt: 'a', score: 1, attempts: 1 }];
    expect(advantages(alone, { baselines })).toEqual({ 'a.0': 0.75 });
    expect(advantages(alone, { baselines }, { baseline: 'none' })).toEqual({ 'a.0': 1 });
  });

  it('an attempt that names no group is one of its own', () => {
    const ungrouped = { shape: { group: '' } };
    expect(advantages([{ attempt: 'a', score: 1, attempts: 0, ...ungrouped }])).toEqual({ 'a.0': 1 });
    // Earlier steps of it may have been trained on: nothing is waited for.
    expect(advantages([{ attempt: 'a', score: 1, turns: 5, ...ungrouped }])).toEqual({ 'a.0': 1 });
    expect(stepsIn([{ attempt: 'a', ...ungrouped }]).size).toBe(0);
  });
});

describe('a group', () => {
  it('a group waits until as many attempts as were announced are whole', () => {
    const first = { attempt: 'a', score: 1, turns: 2 };
    const second = { attempt: 'b', score: 0 };
    const waiting = { 'a.0': 'waiting', 'b.0': 'waiting' };
    expect(advantages([first])).toEqual({ 'a.0': 'waiting' });
    expect(advantages([first, second])).toEqual(waiting);
    expect(advantages([first, { ...first, step: 1 }, second])).toMatchObject({ 'a.0': 1, 'b.0': -1 });
    expect(
      advantages([
        { ...second, attempts: 0 },
        { ...first, turns: 1, attempts: 0 },
      ]),
    ).toEqual(waiting);
  });

  it('a group waits no longer than the recipe says after the last outcome', () => {
    const told = [
      { attempt: 'a', score: 1, attempts: 3, atMs: 0 },
      { attempt: 'b', score: 0, attempts: 3, atMs: 60_000 },
    ];
    expect(stepsIn(told, { nowMs: hour }).get('a.0')).toEqual({ kind: 'waiting', untilMs: hour + 60_000 });
    expect(advantages(told, { nowMs: hour + 60_000 })).toEqual({ 'a.0': 1, 'b.0': -1 });
  });

  it('nothing of a group is given up in the first minute of reading, when newer facts may still come', () => {
    const told = [{ attempt: 'a' }, { attempt: 'b', score: 1 }];
    const context = { nowMs: 3 * hour, readSinceMs: 3 * hour - 1 };
    expect(advantages(told, context)).toEqual({ 'a.0': 'waiting', 'b.0': 'waiting' });
    expect(advantages(told, { ...context, nowMs: context.readSinceMs + 60_000 })).toEqual({
      'a.0': 'settled',
      'b.0': 1,
    });
  });

  it('steps without an outcome wait as long as their attempt goes on, and are then settled', () => {
    const told = [
      { attempt: 'a', atMs: 0 },
      { attempt: 'a', step: 1, atMs: 60_000 },
    ];
    expect(stepsIn(told, { nowMs: hour }).get('a.0')).toEqual({ kind: 'waiting', untilMs: hour + 60_000 });
    expect(stepsIn(told, { nowMs: hour + 60_000 }).get('a.0')).toEqual({ kind: 'settled', reason: 'no_outcome' });
  });

  it('an answer that may not be trained on is in no figures, and its group does not wait for it', () => {
    const reasons = { shape: { reasons: ['aborted'] } };
    const told = [
      { attempt: 'a', score: 1, attempts: 3 },
      { attempt: 'b', score: 0, attempts: 3 },
      { attempt: 'c', score: -1, attempts: 3, ...reasons },
    ];
    expect(advantages(told)).toMatchObject({ 'a.0': 1, 'b.0': -1 });
  });

  it('figures that a batch has fixed hold for what comes later; a step that no batch has met is measured by what waits', () => {
    const steps = [StepFigures.fromPartial({ group: 'g', step: 0, mean: 0.5, deviation: 0.25, count: 4 })];
    const late = [
      { attempt: 'd', score: 1, attempts: 9, turns: 2 },
      { attempt: 'd', step: 1, score: 1, attempts: 9, turns: 2 },
      { attempt: 'e', step: 1, score: 0, attempts: 9, turns: 2 },
    ];
    expect(advantages(late, { steps })).toEqual({ 'd.0': 2, 'd.1': 1, 'e.1': -1 });
  });
});

describe('steps among the turns that wait', () => {
  const weighed = (told: readonly Told[]) => {
    // Alike to the last token, as attempts at one task may be.
    const shape = { answerIds: [1, 2, 3, 4, 5, 6, 7, 8, 9, 10], promptIds: [1, 2, 3] };
    const candidates = told.map((one) => stepOf({ ...one, shape: { ...shape, ...one.shape } }));
    return weighTurns(candidates, learningContext(), recipeWith({ method: 'binary' }));
  };

  it('attempts that are alike count each, and no turn is settled before its group is complete', () => {
    const told = [
      { attempt: 'a', score: 1, attempts: 3 },
      { attempt: 'b', score: 1, attempts: 3 },
      { attempt: 'c', score: 0, attempts: 3, shape: { reasons: ['aborted'] } },
    ];
    const before = weighed(told.slice(1));
    expect([before.attempts.map(({ turn }) => turn), before.settled]).toEqual([['b.0', 'c.0'], []]);
    expect(before.attemptsUntilMs).toBe(hour);
    const after = weighed([...told, { attempt: 'd', score: -1, attempts: 3 }]);
    expect(after.effective.map(({ candidate: { turn } }) => turn)).toEqual(['a.0', 'b.0', 'd.0']);
    expect(after.settled).toMatchObject([{ candidate: { turn: 'c.0' }, reason: 'aborted' }]);
    expect([after.attempts, after.attemptsUntilMs]).toEqual([[], Infinity]);
  });

  it('a step that gives its place to others is settled, and waits for nothing', () => {
    const [waiting] = [stepOf({ attempt: 'a', score: 1, attempts: 3 })];
    const crowded = { ...waiting, reason: 'crowded_out' } as Candidate;
    expect(weighTurns([crowded], learningContext(), recipeWith()).settled).toMatchObject([{ reason: 'crowded_out' }]);
  });

  it('a step takes no reward where no verdict would: a greedy answer, or one that was cut and praised', () => {
    const told = [
      { attempt: 'greedy', score: 1, attempts: 3, shape: { temperature: 0 } },
      { attempt: 'cut', score: 1, attempts: 3, shape: { finishReason: 'length' } },
      { attempt: 'plain', score: -1, attempts: 3 },
    ];
    const { effective, settled } = weighed(told);
    expect(effective.map(({ candidate: { turn } }) => turn)).toEqual(['plain.0']);
    expect(settled.map(({ reason }) => reason)).toEqual(['nothing_to_learn', 'nothing_to_learn']);
  });
});

describe('figures in the ledger', () => {
  const figuresOf = (at: number, mean = 0.5) => StepFigures.fromPartial({ group: 'g', step: at, mean, count: 2 });
  const handled = (...ofGroup: StepFigures[]): RewardedStep => ({
    attempt: { group: 'g', attempt: 'a', step: 0, reward: 1 },
    ofGroup,
  });

  it('figures of all steps of a group are fixed by the first batch that has one of them', () => {
    const first = figuresAfter([], [handled(figuresOf(0), figuresOf(1))]);
    expect(first).toEqual([figuresOf(0), figuresOf(1)]);
    expect(figuresAfter(first, [handled(figuresOf(1, 9), figuresOf(2))])).toEqual([
      figuresOf(0),
      figuresOf(1),
      figuresOf(2),
    ]);
  });

  it('figures are no more than a fact may hold; the oldest leave first', () => {
    const kept = figuresAfter([], [handled(...Array.from({ length: 1_030 }, (_, at) => figuresOf(at)))]);
    expect(kept).toHaveLength(1_024);
    expect(kept[0]?.step).toBe(6);
  });
});
