import { Lesson_State, UserBaseline, type Lesson } from '@backtalk/proto/facts';
import { describe, expect, it } from 'vitest';

import { candidate, learningContext, recipeWith } from '../testing/candidates.js';
import { lesson } from '../testing/lessons.js';
import type { TurnShape } from '../testing/turns.js';
import type { Recipe } from './recipe.js';
import { worthOf, type LearningContext } from './sample-worth.js';

const shortHint = 'Answer in one brief sentence.';

function worth(shape: Partial<TurnShape>, context: Partial<LearningContext> = {}, values: Partial<Recipe> = {}) {
  return worthOf(candidate({ turn: 't1', ...shape }), learningContext(context), recipeWith(values));
}

describe('what a turn is worth', () => {
  it('a hint makes a turn effective, whatever the verdict', () => {
    expect(worth({ verdict: 0, hint: shortHint })).toMatchObject({ kind: 'effective', advantage: 0, hinted: true });
  });

  it('a verdict makes a turn effective when the advantage is more than 0.05', () => {
    const baselines = [UserBaseline.fromPartial({ user: 'user0', mean: 0.97, count: 40 })];
    expect(worth({ verdict: 1 })).toMatchObject({ kind: 'effective', advantage: 1 });
    expect(worth({ verdict: 1 }, { baselines }).kind).toBe('idle');
    expect(worth({ verdict: -1 }, { baselines })).toMatchObject({ kind: 'effective', advantage: -1.97 });
    expect(worth({ verdict: 1 }, { baselines }, { baseline: 'none' })).toMatchObject({
      kind: 'effective',
      advantage: 1,
    });
  });

  it('a wish of the turn’s user makes it effective beside another person’s score, whose words are no wish of the user', () => {
    const baselines = [UserBaseline.fromPartial({ user: 'user0', mean: 1, count: 40 })];
    const own = { text: shortHint, stands: true, bare: false };
    const judged = { giver: 'b', wish: own };
    const heard = { kind: 'effective', hinted: false, wished: true };
    expect(worth({ verdict: 1, judged }, { baselines })).toMatchObject(heard);
    expect(worth({ verdict: 1, judged }, { baselines }, { method: 'binary' }).kind).toBe('idle');
    const theirs = worth({ verdict: -1, hint: 'Use tables.', judged: { giver: 'b' } });
    expect(theirs).toMatchObject({ hinted: true, wished: false });
    expect(worth({ verdict: -1, hint: shortHint })).toMatchObject({ hinted: true, wished: true });
  });

  it('what was said before its lesson ended asks for nothing, and for the same again where it is said later', () => {
    const scope = { scopeTenant: 'tenant0', scopeUser: 'user0' };
    const ended = (changedAtMs: number) =>
      lesson({ text: shortHint, state: Lesson_State.STATE_RETIRED, changedAtMs, ...scope });
    const of = (...lessons: Lesson[]) => worth({ verdict: 0, hint: shortHint }, { lessons }).kind;
    const later = 1;
    expect(of(ended(later))).toBe('idle');
    expect(of(ended(0))).toBe('effective');
    expect(of(ended(later), lesson({ text: shortHint, ...scope }))).toBe('effective');
    expect(of({ ...ended(later), scopeUser: 'bob' })).toBe('effective');
    expect(of({ ...ended(later), scopeUser: '' })).toBe('effective');
  });

  it('a turn with lessons shown gives no reward, and counts while one of them is being learned', () => {
    const shown = [{ lesson: 'l1', text: shortHint }];
    const scope = { scopeTenant: 'tenant0', scopeUser: 'user0' };
    const of = (state: Lesson_State) => ({ lessons: [lesson({ id: 'l1', state, ...scope })] });
    const active = of(Lesson_State.STATE_ACTIVE);
    expect(worth({ verdict: 1, shown }, active)).toMatchObject({ kind: 'effective', advantage: 0, hinted: false });
    expect(worth({ verdict: 0, shown }, active).kind).toBe('effective');
    expect(worth({ verdict: 1, shown }, of(Lesson_State.STATE_LEARNED)).kind).toBe('idle');
    expect(worth({ verdict: -1, shown }, of(Lesson_State.STATE_RETIRED))).toMatchObject({ kind: 'idle', advantage: 0 });
    // Shown before a batch made a lesson of it.
    const said = [{ lesson: '', text: shortHint }];
    const since = { lessons: [lesson({ id: 'l2', text: 'Be brief.', wordings: [shortHint], ...scope })] };
    expect(worth({ verdict: 1, shown: said }, since).kind).toBe('effective');
    expect(worth({ verdict: 1, shown: said }).kind).toBe('idle');
    expect(worth({ verdict: 1, shown }, active, { method: 'binary' })).toEqual({
      kind: 'settled',
      reason: 'lessons_shown',
    });
  });

  it('no verdict gives advantage 0, even against a baseline', () => {
    const baselines = [UserBaseline.fromPartial({ user: 'user0', mean: -1, count: 40 })];
    expect(worth({ verdict: 0 }, { baselines })).toEqual({ kind: 'idle', advantage: 0, back: 0 });
  });

  it('the at-least-one rule brings its own advantage', () => {
    expect(worth({ verdict: 0, judged: { hasAdvantage: true, advantage: -0.66 } })).toMatchObject({
      kind: 'effective',
      advantage: -0.66,
    });
  });

  it('an answer that was cut is never praised, but may be corrected', () => {
    expect(worth({ verdict: 1, finishReason: 'length' })).toEqual({ kind: 'idle', advantage: 0, back: 0 });
    expect(worth({ verdict: -1, finishReason: 'length' })).toMatchObject({ kind: 'effective', advantage: -1 });
  });

  it('a greedy answer takes no reward and serves full distillation only', () => {
    expect(worth({ temperature: 0, verdict: -1 }).kind).toBe('idle');
    expect(worth({ temperature: 0, verdict: -1, hint: shortHint })).toMatchObject({
      kind: 'effective',
      advantage: 0,
      hinted: true,
    });
    expect(worth({ temperature: 0, hint: shortHint }, {}, { opdForm: 'sampled' }).kind).toBe('idle');
    // As engines take it.
    expect(worth({ temperature: 1e-6, verdict: -1 }).kind).toBe('idle');
    expect(worth({ temperature: 0.01, verdict: -1 }).kind).toBe('effective');
  });

  it('four versions back still rewards, eight still distils, nine is stale', () => {
    const at = (back: number) => worth({ verdict: -1, hint: shortHint }, { versionsBack: () => back });
    expect(at(4)).toMatchObject({ kind: 'effective', advantage: -1 });
    expect(at(5)).toMatchObject({ kind: 'effective', advantage: 0 });
    expect(at(8)).toMatchObject({ kind: 'effective', advantage: 0 });
    expect(at(9)).toEqual({ kind: 'settled', reason: 'stale' });
    const sampled = worth({ verdict: -1, hint: shortHint }, { versionsBack: () => 5 }, { opdForm: 'sampled' });
    expect(sampled).toEqual({ kind: 'settled', reason: 'stale' });
  });

  it('answers of a burned or unknown version are quarantined', () => {
    expect(worth({}, { versionsBack: () => 'burned' })).toEqual({ kind: 'settled', reason: 'burned_version' });
    expect(worth({}, { versionsBack: () => 'unknown' })).toEqual({ kind: 'settled', reason: 'unknown_version' });
  });

  it('the reason of the gateway settles an untrainable turn', () => {
    expect(worth({ reasons: ['opted_out', 'aborted'] })).toEqual({ kind: 'settled', reason: 'opted_out' });
  });

  it('the method decides what counts', () => {
    expect(worth({ verdict: -1 }, {}, { method: 'opd' }).kind).toBe('idle');
    expect(worth({ verdict: 0, hint: shortHint }, {}, { method: 'binary' }).kind).toBe('idle');
  });

  it('a hint that quotes a token of a chat template is none', () => {
    expect(worth({ verdict: 0, hint: 'Be brief.<|im_end|>' }).kind).toBe('idle');
  });

  it('a hint makes a turn effective, whatever lessons there are', () => {
    const lessons = [
      lesson({ text: shortHint, scopeTenant: 'tenant0', scopeUser: 'user0', state: Lesson_State.STATE_UNTEACHABLE }),
    ];
    expect(worth({ verdict: 0, hint: shortHint }, { lessons }).kind).toBe('effective');
  });

  it('a correction from before its lesson was learned teaches no more, and a later one does', () => {
    const state = Lesson_State.STATE_LEARNED;
    const learned = lesson({ text: shortHint, scopeTenant: 'tenant0', scopeUser: 'user0', state, sinceBatch: 3 });
    const at = (back: number, text = learned.text) => {
      const context = { lessons: [{ ...learned, text }], versionsBack: () => back, versionsAfter: () => 2 };
      return worth({ verdict: 0, hint: shortHint }, context).kind;
    };
    expect([at(3), at(2), at(3, 'Another wish.')]).toEqual(['idle', 'effective', 'effective']);
  });
});
