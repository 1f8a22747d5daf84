import { TurnJudged_Source } from '@backtalk/proto/facts';
import { describe, expect, it } from 'vitest';

import { candidate, learningContext, recipeWith } from '../testing/candidates.js';
import type { TurnShape } from '../testing/turns.js';
import { decideBatch, type BatchDecision } from './batch-rule.js';
import type { Candidate } from './candidate.js';
import type { Recipe } from './recipe.js';
import { weighTurns } from './weigh-turns.js';

const shortHint = 'Answer in one brief sentence.';
const minuteMs = 60_000;

function turns(count: number, shape: Partial<TurnShape> = {}, from = 0): Candidate[] {
  return Array.from({ length: count }, (_, n) =>
    candidate({ turn: `${shape.user ?? 'user0'}-${from + n}`, ...shape }, from + n),
  );
}

function decide(candidates: readonly Candidate[], nowMs = 0, values: Partial<Recipe> = {}): BatchDecision {
  return decideBatch(weighTurns(candidates, learningContext(), recipeWith()), recipeWith(values), nowMs);
}

function taken(decision: BatchDecision): string[] {
  return decision.kind === 'train' ? decision.effective.map(({ candidate: { turn } }) => turn) : [];
}

describe('when a batch closes', () => {
  it('closes at the set number of effective samples; the surplus stays', () => {
    expect(decide(turns(7, { hint: shortHint })).kind).toBe('wait');
    const decision = decide(turns(9, { hint: shortHint }));
    expect(decision).toMatchObject({ kind: 'train', why: 'full' });
    expect(taken(decision)).toEqual(turns(8).map(({ turn }) => turn));
  });

  it('closes with four when the oldest has waited long enough, not with three', () => {
    expect(decide(turns(4, { hint: shortHint }), 10 * minuteMs - 1)).toEqual({ kind: 'wait', untilMs: 10 * minuteMs });
    expect(decide(turns(4, { hint: shortHint }), 10 * minuteMs)).toMatchObject({ kind: 'train', why: 'timeout' });
    expect(decide(turns(3, { hint: shortHint }), 60 * minuteMs)).toEqual({ kind: 'wait', untilMs: undefined });
  });

  it('answers of the newest version come first, the oldest of them before the others; what is left waits for the next', () => {
    const hint = shortHint;
    const old = turns(6, { hint, user: 'old', version: 'backtalk-v1' });
    const fresh = turns(5, { hint, user: 'new', version: 'backtalk-v3' }, 6);
    const context = learningContext({ versionsBack: (version) => (version === 'backtalk-v3' ? 0 : 2) });
    const decision = decideBatch(weighTurns([...old, ...fresh], context, recipeWith()), recipeWith(), 0);
    const wanted = [...fresh, ...old.slice(0, 3)].map(({ turn }) => turn);
    expect(new Set(taken(decision))).toEqual(new Set(wanted));
  });

  it('decides the same whatever the order of arrival', () => {
    const candidates = turns(12, { hint: shortHint });
    expect(taken(decide(candidates.toReversed()))).toEqual(taken(decide(candidates)));
  });

  it('takes as many anchors as effective samples, the newest ones', () => {
    const decision = decide([...turns(8, { hint: shortHint }, 100), ...turns(20, { verdict: 0 })]);
    expect(decision.kind === 'train' && decision.anchors.map(({ candidate: { turn } }) => turn)).toEqual(
      turns(8, {}, 12).map(({ turn }) => turn),
    );
    expect(decision.kind === 'train' && decision.settled.map(({ reason }) => reason)).toEqual(
      Array(12).fill('anchor_surplus'),
    );
  });

  it('settles turns without a signal as nothing to learn when no lesson is active', () => {
    const decision = decide(turns(32, { verdict: 0 }));
    expect(decision.kind === 'settle' && new Set(decision.settled.map(({ reason }) => reason))).toEqual(
      new Set(['nothing_to_learn']),
    );
  });

  it('settles turns in a fact of their own when they are many or old', () => {
    const untrainable = turns(2, { reasons: ['no_token_ids'] });
    expect(decide(untrainable, minuteMs)).toEqual({ kind: 'wait', untilMs: 10 * minuteMs });
    expect(decide(untrainable, 10 * minuteMs).kind).toBe('settle');
    expect(decide(turns(32, { reasons: ['no_token_ids'] })).kind).toBe('settle');
  });

  it('counts near-duplicates of one user once', () => {
    const answerIds = [1, 2, 3, 4, 5, 6, 7, 8];
    const twice = candidate({ turn: 'same', hint: shortHint, answerIds }, 1);
    const again = { ...candidate({ turn: 'same', hint: shortHint, answerIds }, 2), turn: 'again' };
    const other = { ...candidate({ turn: 'same', user: 'user1', hint: shortHint, answerIds }, 3), turn: 'other' };
    const waiting = weighTurns([again, twice, other], learningContext(), recipeWith());
    expect(waiting.effective.map(({ candidate: { turn } }) => turn)).toEqual(['same', 'other']);
    expect(waiting.settled).toMatchObject([{ candidate: { turn: 'again' }, reason: 'duplicate' }]);
  });

  it('counts two things that are said of one answer as two', () => {
    const answerIds = [1, 2, 3, 4, 5, 6, 7, 8];
    const said = (turn: string, hint: string, sequence: number) => ({
      ...candidate({ turn: 'same', hint, verdict: hint === '' ? 0 : -1, answerIds }, sequence),
      turn,
    });
    const all = [said('one', shortHint, 1), said('two', 'Name the file.', 2), said('three', shortHint, 3)];
    const waiting = weighTurns([...all, said('silent', '', 4)], learningContext(), recipeWith());
    expect(waiting.effective.map(({ candidate: { turn } }) => turn)).toEqual(['one', 'two']);
    expect(waiting.settled.map(({ candidate: { turn } }) => turn)).toEqual(['three', 'silent']);
  });

  it('takes at most one sample of the at-least-one rule into a small batch', () => {
    const rescued = turns(4, {
      verdict: 0,
      judged: { hasAdvantage: true, advantage: 0.5, source: TurnJudged_Source.SOURCE_AT_LEAST_ONE },
    });
    const decision = decide([...rescued, ...turns(7, { hint: shortHint }, 50)]);
    expect(taken(decision)).toEqual(['user0-0', ...turns(7, {}, 50).map(({ turn }) => turn)]);
  });
});

describe('the share of a user', () => {
  const voices = (a: number, b: number, c: number): Candidate[] => [
    ...turns(a, { user: 'a', hint: shortHint }, 0),
    ...turns(b, { user: 'b', hint: shortHint }, 100),
    ...turns(c, { user: 'c', hint: shortHint }, 200),
  ];
  const shares = (decision: BatchDecision): Record<string, number> =>
    taken(decision).reduce<Record<string, number>>((counts, turn) => {
      const user = turn.slice(0, 1);
      return { ...counts, [user]: (counts[user] ?? 0) + 1 };
    }, {});

  it('a user’s share is a quarter where three or more users wait', () => {
    expect(decide(voices(20, 2, 2)).kind).toBe('wait');
    expect(shares(decide(voices(20, 2, 2), 10 * minuteMs))).toEqual({ a: 2, b: 2, c: 2 });
  });

  it('a user’s share of one batch is unbounded where fewer users wait', () => {
    expect(
      shares(decide([...turns(20, { user: 'a', hint: shortHint }), ...turns(1, { user: 'b', hint: shortHint }, 50)])),
    ).toEqual({ a: 8 });
  });

  it('a user’s share never holds a batch back beyond the wait', () => {
    expect(shares(decide(voices(6, 1, 1), 10 * minuteMs, { effective: 4 }))).toEqual({ a: 2, b: 1, c: 1 });
  });

  it('a user’s share leaves room for every one of many users', () => {
    const many = ['a', 'b', 'c', 'd'].flatMap((user, n) => turns(5, { user, hint: shortHint }, n * 100));
    expect(shares(decide(many))).toEqual({ a: 2, b: 2, c: 2, d: 2 });
  });
});

describe('tenants', () => {
  const of = (tenant: string, count: number, from: number): Candidate[] =>
    Array.from({ length: count }, (_, n) =>
      candidate(
        { turn: `${tenant}-${n}`, tenant, user: `user${n % 4}`, hint: shortHint },
        from + n,
        (from + n) * minuteMs,
      ),
    );
  const tenantsOf = (decision: BatchDecision): string[] => {
    if (decision.kind !== 'train') return [];
    const all = [...decision.effective, ...decision.anchors, ...decision.settled];
    return [...new Set(all.map(({ candidate: { tenant } }) => tenant))];
  };

  it('a batch holds one tenant, in its samples, its anchors and what it settles', () => {
    const idle = turns(3, { tenant: 'b', verdict: 0 }, 500);
    const lost = turns(3, { tenant: 'b', user: 'user9', reasons: ['aborted'] }, 600);
    // One of each tenant, in turn.
    const mixed = [...of('a', 8, 0), ...of('b', 8, 0.5)];
    expect(tenantsOf(decide([...mixed, ...idle, ...lost]))).toEqual(['a']);
  });

  it('the tenant that has waited longest comes first, of those that have enough', () => {
    expect(tenantsOf(decide([...of('b', 8, 100), ...of('a', 8, 0)]))).toEqual(['a']);
    expect(tenantsOf(decide([...of('b', 8, 100), ...of('a', 3, 0)], 100 * minuteMs))).toEqual(['b']);
    expect(decide([...of('b', 5, 100), ...of('a', 3, 0)], 105 * minuteMs)).toEqual({
      kind: 'wait',
      untilMs: 110 * minuteMs,
    });
  });

  it('a tenant that says more than is trained on leaves others their turn', () => {
    const waiting = weighTurns([...of('a', 20, 0), ...of('b', 8, 100)], learningContext(), recipeWith());
    const after = (...tenants: readonly string[]) => {
      const recent = tenants.map((tenant) => [{ tenant, user: 'u', giver: '', effective: true }]);
      return tenantsOf(decideBatch(waiting, recipeWith(), 200 * minuteMs, recent));
    };
    expect(after()).toEqual(['a']);
    expect(after('a')).toEqual(['b']);
    expect(after('a', 'b')).toEqual(['a']);
    expect(after('b', 'a')).toEqual(['b']);
  });

  it('each tenant keeps anchors of its own', () => {
    const idle = (tenant: string, from: number): Candidate[] =>
      turns(8, { tenant, user: `${tenant}0`, verdict: 0 }, from);
    const hinted = (tenant: string): Candidate[] => turns(1, { tenant, user: `${tenant}0`, hint: shortHint });
    const all = [...hinted('a'), ...hinted('b'), ...idle('a', 10), ...idle('b', 30)];
    const { idle: kept } = weighTurns(all, learningContext(), recipeWith());
    expect(kept.map(({ candidate: { tenant } }) => tenant).join('')).toBe('a'.repeat(8) + 'b'.repeat(8));
  });
});

describe('the share of a giver', () => {
  const corrected = (count: number, giver: string, from: number): Candidate[] =>
    Array.from({ length: count }, (_, n) =>
      candidate({ turn: `${giver}-${n}`, user: `user${from + n}`, hint: shortHint, judged: { giver } }, from + n),
    );

  it('one who corrects the turns of all others has the share of one', () => {
    const decision = decide([...corrected(12, 'busy', 0), ...corrected(3, 'b', 50), ...corrected(3, 'c', 80)]);
    const busy = taken(
      decide([...corrected(12, 'busy', 0), ...corrected(3, 'b', 50), ...corrected(3, 'c', 80)], 10 * minuteMs),
    );
    expect(decision.kind).toBe('wait');
    expect(busy.filter((turn) => turn.startsWith('busy'))).toHaveLength(2);
  });
});

describe('the share of versions', () => {
  const version = (user: string) =>
    Array.from({ length: 8 }, () => ({ tenant: 'tenant0', user, giver: '', effective: true }));
  const both = [...turns(20, { user: 'a', hint: shortHint }), ...turns(4, { user: 'b', hint: shortHint }, 50)];
  const takenOf = (recent: readonly ReturnType<typeof version>[], candidates: readonly Candidate[]): string[] => {
    const waiting = weighTurns(candidates, learningContext(), recipeWith());
    return taken(decideBatch(waiting, recipeWith(), 10 * minuteMs, recent)).map((turn) => turn.slice(0, 1));
  };

  it('a user who made half of the last versions gives way to another who waits', () => {
    expect(takenOf(Array(3).fill(version('a')), both)).toEqual(Array(8).fill('a'));
    expect(takenOf(Array(4).fill(version('a')), both)).toEqual(['a', 'b', 'b', 'b', 'b']);
  });

  it('a user who waits alone is not held back', () => {
    expect(takenOf(Array(7).fill(version('a')), turns(20, { user: 'a', hint: shortHint }))).toEqual(Array(8).fill('a'));
  });
});
