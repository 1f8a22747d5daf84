import { BatchClosed, Lesson, Lesson_State, type BatchSample } from '@backtalk/proto/facts';
import { describe, expect, it } from 'vitest';

import { completedTurn, judgedTurn, openedTurn, type TurnShape } from '../testing/turns.js';
import { recipePresets } from './recipe.js';
import { rejudgedBatch, type Rejudged } from './rejudged-batch.js';

const recipe = recipePresets.tiny.recipe;
const baselines = [{ user: 'user0', mean: 0.5, count: 2, stepMean: 0, stepCount: 0 }];
const at = { moved: false, lessons: [], baselines, versionsBack: () => 0, versionsAfter: () => 0 };

function batchOf(samples: readonly Partial<BatchSample>[], more: Partial<BatchClosed> = {}): BatchClosed {
  const person = { tenant: 'tenant0', user: 'user0' };
  return BatchClosed.fromPartial({
    policy: 'backtalk',
    number: 3,
    samples: samples.map((one) => ({ ...person, ...one })),
    ...more,
  });
}

/** @param before as the judge of then had it */
function judged(again: TurnShape, before: Partial<TurnShape> = {}): readonly [string, Rejudged] {
  const facts = { opened: openedTurn(again), completed: completedTurn(again), continued: undefined };
  return [again.turn, { facts, first: judgedTurn({ ...again, ...before }), again: judgedTurn(again) }];
}

describe('a batch that is judged again', () => {
  it('a turn that was answered with lessons shown is rewarded by no judge, and moves no baseline', () => {
    const shown = [{ lesson: 'l1', text: 'Be brief.' }];
    const batch = batchOf([{ turn: 'one', shown: true }]);
    const found = rejudgedBatch(
      batch,
      new Map([judged({ turn: 'one', verdict: 1, shown }, { verdict: -1 })]),
      at,
      recipe,
    );
    expect(found.batch.samples[0]).toMatchObject({ verdict: 1, advantage: 0 });
    expect(found.baselines).toEqual(baselines);
  });

  it('what is judged as it was stays as it was, unless the baselines are others', () => {
    const sample = { turn: 'one', verdict: 1, advantage: 0.125, hindsight: 'As it was.' };
    const same = new Map([judged({ turn: 'one', verdict: 1 })]);
    const found = rejudgedBatch(batchOf([sample]), same, at, recipe);
    expect(found.batch).toEqual(batchOf([sample]));
    expect(found.baselines).toBeUndefined();
    const moved = rejudgedBatch(batchOf([sample]), same, { ...at, moved: true }, recipe);
    expect(moved.batch.samples[0]).toMatchObject({ advantage: 0.5, hindsight: 'As it was.' });
    expect(moved.baselines).toMatchObject([{ count: 3 }]);
  });

  it('what a step of before is repeated on moved its baselines when it was first taken', () => {
    const again = new Map([judged({ turn: 'one', verdict: 1 }, { verdict: 0 })]);
    const moved = rejudgedBatch(batchOf([{ turn: 'one' }]), again, at, recipe);
    expect(moved.baselines).toMatchObject([{ count: 3 }]);
    const repeated = rejudgedBatch(batchOf([{ turn: 'one' }], { repeats: 2, first: 2 }), again, at, recipe);
    expect(repeated.baselines).toBeUndefined();
    expect(repeated.batch.samples[0]?.advantage).toBe(0.5);
  });

  it('a reward stays with fresh answers, also where another judge is pleased with an old one', () => {
    const old = { ...at, versionsBack: () => recipe.rewardVersions + 1 };
    const again = new Map([judged({ turn: 'one', verdict: 1 }, { verdict: 0 })]);
    expect(rejudgedBatch(batchOf([{ turn: 'one' }]), again, old, recipe).batch.samples[0]?.advantage).toBe(0);
    expect(rejudgedBatch(batchOf([{ turn: 'one' }]), again, at, recipe).batch.samples[0]?.advantage).toBe(0.5);
  });

  it('words that a lesson shown to the teacher says already are shown once', () => {
    const lesson = Lesson.fromPartial({ id: 'l1', text: 'Be brief.', state: Lesson_State.STATE_ACTIVE });
    const batch = batchOf([{ turn: 'one', lessons: ['l1'] }, { turn: 'two' }], { lessons: [lesson] });
    const again = new Map(['one', 'two'].map((turn) => judged({ turn, hint: 'Be brief.' }, { hint: 'Use tables.' })));
    const { batch: other, changes } = rejudgedBatch(batch, again, at, recipe);
    expect(other.samples.map(({ hindsight }) => hindsight)).toEqual(['', 'Be brief.']);
    expect(changes).toEqual({ turns: 2, verdicts: 0, hints: 2, refused: 0 });
  });

  it('words of a lesson that was learned since the answer are shown no more', () => {
    const learned = Lesson.fromPartial({
      id: 'l1',
      text: 'be brief',
      state: Lesson_State.STATE_LEARNED,
      scopeTenant: 'tenant0',
      scopeUser: 'user0',
      wordings: ['Be brief.'],
      sinceBatch: 2,
    });
    const again = new Map([judged({ turn: 'one', hint: 'Be brief.' }, { hint: '' })]);
    const since = { ...at, lessons: [learned], versionsBack: () => 2, versionsAfter: () => 1 };
    expect(rejudgedBatch(batchOf([{ turn: 'one' }]), again, since, recipe).batch.samples[0]?.hindsight).toBe('');
    const later = { ...since, versionsBack: () => 0 };
    expect(rejudgedBatch(batchOf([{ turn: 'one' }]), again, later, recipe).batch.samples[0]?.hindsight).toBe(
      'Be brief.',
    );
  });
});
