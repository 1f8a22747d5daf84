import { Lesson_State, type Lesson } from '@backtalk/proto/facts';
import { describe, expect, it } from 'vitest';

import { candidate, learningContext, recipeWith } from '../testing/candidates.js';
import { lesson } from '../testing/lessons.js';
import type { TurnShape } from '../testing/turns.js';
import type { Recipe } from './recipe.js';
import { rehearsalFor, rehearsedSamples } from './rehearsal.js';
import { measuringQuestions, rehearsalQuestions } from './rehearsal-questions.js';
import { decodePlan, planOf } from './step-plan.js';
import { weighTurns } from './weigh-turns.js';

const scope = { scopeTenant: 'tenant0', scopeUser: 'user0' };
const stands = { hint: 'Always use tables.', stands: true };

function rehearsal(
  turns: readonly Partial<TurnShape>[],
  lessons: readonly Lesson[] = [],
  more: Partial<Recipe> = {},
  cameToNothing = false,
) {
  const recipe = recipeWith({ rehearsalSteps: 3, ...more });
  const candidates = turns.map((shape, at) => candidate({ turn: `turn${at}`, ...shape }, at));
  const waiting = weighTurns(candidates, learningContext({ lessons }), recipe);
  return rehearsalFor(waiting, lessons, { recipe, recent: [], cameToNothing });
}

describe('when a lesson is rehearsed', () => {
  it('one correction is enough where it is said to stand; one that may be meant for once waits for others', () => {
    const decision = rehearsal([stands]);
    expect(decision).toMatchObject({ why: 'rehearsed', rehearsed: { tenant: 'tenant0', user: 'user0' } });
    expect(decision?.effective.map(({ candidate: { turn } }) => turn)).toEqual(['turn0']);
    expect(rehearsal([{ hint: 'Use tables.' }])).toBeUndefined();
    expect(rehearsal([{ verdict: 1 }])).toBeUndefined();
    expect(rehearsal([{ ...stands, judged: { bare: true } }])).toBeUndefined();
  });

  it('a lesson is rehearsed for as many steps as the recipe says, also where no turn waits', () => {
    const given = (more: Partial<Lesson>) => lesson({ id: 'l1', text: 'Use tables.', ...scope, ...more });
    expect(rehearsal([], [given({ steps: 2 })])).toMatchObject({ effective: [], rehearsed: { user: 'user0' } });
    expect(rehearsal([], [given({ steps: 3 })])).toBeUndefined();
    expect(rehearsal([], [given({ state: Lesson_State.STATE_LEARNED })])).toBeUndefined();
    expect(rehearsal([], [given({ coveredBy: 'l2' })])).toBeUndefined();
    expect(rehearsal([], [given({ waitsFor: 'l2' })])).toBeUndefined();
    expect(rehearsal([], [given({ cameBack: true })])).toBeUndefined();
    // Said again in the same words, it is not new.
    expect(rehearsal([stands], [given({ steps: 3, wordings: [stands.hint] })])).toBeUndefined();
    expect(rehearsal([stands], [given({ steps: 3, scopeUser: 'bob', wordings: [stands.hint] })])).toBeDefined();
    const newer = Array.from({ length: 12 }, (_, n) => given({ id: `n${n}`, steps: 3 }));
    expect(rehearsal([stands], [given({ steps: 3, text: stands.hint }), ...newer])).toMatchObject({ saidIn: 'turn0' });
    const ended = given({ text: stands.hint, state: Lesson_State.STATE_RETIRED });
    expect(rehearsal([stands], [ended])).toMatchObject({ saidIn: 'turn0' });
  });

  it('the lesson that has been active for longest comes first, and other tenants’ turns stay', () => {
    const lessons = [
      lesson({ id: 'new', scopeTenant: 'tenant0', scopeUser: 'ann', sinceBatch: 9 }),
      lesson({ id: 'old', scopeTenant: 'tenant1', scopeUser: 'bob', sinceBatch: 4 }),
    ];
    const turns = [{ verdict: -1 }, { verdict: -1, tenant: 'tenant1' }];
    const decision = rehearsal(turns, lessons);
    expect(decision?.rehearsed).toEqual({ tenant: 'tenant1', user: 'bob' });
    expect(decision?.effective.map(({ candidate: { turn } }) => turn)).toEqual(['turn1']);
  });

  it('what came to nothing is not rehearsed again, and what is said anew is', () => {
    const active = [lesson({ id: 'l1', ...scope })];
    expect(rehearsal([], active, {}, true)).toBeUndefined();
    expect(rehearsal([stands], active, {}, true)).toBeDefined();
  });

  it('a lesson that teachers have no room for is not rehearsed: its steps would never come', () => {
    const long = 'x'.repeat(300);
    const many = Array.from({ length: 6 }, (_, at) =>
      lesson({ id: `l${at}`, text: long, steps: at === 0 ? 0 : 3, sinceBatch: at, ...scope }),
    );
    expect(rehearsal([], many)).toBeUndefined();
    expect(rehearsal([], many.slice(0, 4))).toBeDefined();
    // Of an older release, of which no tenant is known: it holds for none.
    expect(rehearsal([], [lesson({ id: 'l1', scopeTenant: '', scopeUser: '' })])).toBeUndefined();
  });

  it('the turn that asked is in the batch, beside no more of others than a batch may take', () => {
    const others = Array.from({ length: 12 }, (_, at) => ({ turn: `other${at}`, user: 'bob', verdict: -1 }));
    const settled = { turn: 'gone', tenant: 'tenant1', reasons: ['aborted'] };
    const decision = rehearsal([...others, { ...stands, user: 'ann' }, settled]);
    expect(decision?.effective).toHaveLength(8);
    expect(decision?.effective[0]?.candidate.turn).toBe('turn12');
    expect(decision?.settled).toEqual([]);
  });

  it('nothing is rehearsed where the recipe says so, nor where nothing is distilled', () => {
    expect(rehearsal([stands], [], { rehearsalSteps: 0 })).toBeUndefined();
    expect(rehearsal([stands], [], { method: 'binary' })).toBeUndefined();
    expect(rehearsal([stands], [], { weightOpd: 0 })).toBeUndefined();
  });
});

describe('what is rehearsed', () => {
  const speaker = { tenant: 't', user: 'u' };
  const active = lesson({ id: 'l1', scopeTenant: 't', scopeUser: 'u' });
  const samples = (version: number, taken: number, lessons = [active], recipe = recipeWith()) =>
    rehearsedSamples(speaker, lessons, { batch: 7, version, taken, recipe });

  it('questions of the trainer’s own fill a batch up, others from version to version', () => {
    expect(samples(1, 3)).toHaveLength(5);
    expect(samples(1, 30)).toHaveLength(4);
    expect(samples(1, 0)[0]).toMatchObject({ turn: 'rehearsal_7_1', lessons: ['l1'], shown: true, effective: false });
    const asked = (version: number) => samples(version, 0).map(({ question }) => question);
    expect(asked(1)).not.toEqual(asked(2));
    const all = [1, 2, 3].flatMap(asked);
    expect(new Set(all)).toEqual(new Set(rehearsalQuestions.map((_, at) => at + 1)));
  });

  it('nothing is rehearsed of what no lesson is due for any more', () => {
    expect(samples(1, 0, [])).toEqual([]);
    expect(samples(1, 0, [{ ...active, steps: 24 }])).toEqual([]);
    expect(samples(1, 0, [{ ...active, state: Lesson_State.STATE_LEARNED }])).toEqual([]);
  });

  it('the plan holds the questions, none of which measures or probes', () => {
    const plan = decodePlan(planOf(recipeWith({ rehearsalSteps: 3 })).bytes);
    expect(plan?.rehearsalQuestions).toEqual(rehearsalQuestions);
    expect(decodePlan(planOf(recipeWith({ rehearsalSteps: 0 })).bytes)?.rehearsalQuestions).toEqual([]);
    const probes = (plan?.probePrompts ?? []).map((bytes) => new TextDecoder().decode(bytes)).join('\n');
    const all = [...rehearsalQuestions, ...measuringQuestions];
    expect(new Set(all).size).toBe(all.length);
    expect(all.filter((question) => probes.includes(question))).toEqual([]);
  });
});
