import { LessonChanged, LessonChanged_Action, TurnJudged } from '@backtalk/proto/facts';
import { describe, expect, it } from 'vitest';

import type { Candidate } from './candidate.js';
import { candidate } from '../testing/candidates.js';
import { inBatch, lesson } from '../testing/lessons.js';
import { figuresWithout, forgottenIn, isOfForgotten, lessonsWithout, turnsOfForgotten } from './forgotten-people.js';
import { wishesIn, withChanges } from './lesson-changes.js';

type TurnIds = Pick<Candidate, 'turn' | 'tenant' | 'user'>;

const ada = { tenant: 't', user: 'ada' };
const said = (shape: Partial<LessonChanged>) => [
  { message: LessonChanged.fromPartial({ ...ada, ...shape }), sequence: 1, timeMs: 1_000 },
];
const erasing = said({ action: LessonChanged_Action.ACTION_ERASE });

describe('a person who is forgotten', () => {
  const theirs = lesson({ id: 'theirs', scopeTenant: 't', scopeUser: 'ada' });
  const others = [
    lesson({ id: 'other', scopeTenant: 't', scopeUser: 'ben' }),
    lesson({ id: 'namesake', scopeTenant: 'u', scopeUser: 'ada' }),
    lesson({ id: 'everyone', scopeTenant: 't', scopeUser: '', cases: [{ turn: 'b', tenant: 't', user: 'ben' }] }),
  ];

  it('a forgotten person’s lessons leave the ledger, whatever became of them, and no other’s', () => {
    const left = withChanges([theirs, ...others], erasing, inBatch(3));
    expect(left).toEqual(others);
    expect(wishesIn([theirs, ...others], erasing)).toEqual([]);
  });

  it('a lesson that holds for everyone goes where they asked for it, and no lesson names one that is gone', () => {
    const shared = lesson({ id: 'shared', scopeTenant: 't', scopeUser: '', cases: [{ turn: 'a', ...ada }] });
    const ended = lesson({ id: 'ended', scopeTenant: 't', scopeUser: '', supersededBy: 'shared' });
    expect(lessonsWithout([shared, ended], ada)).toEqual([{ ...ended, supersededBy: '' }]);
  });

  it('the ledger keeps no baseline of a forgotten person, and a change of another kind forgets none', () => {
    const baselines = ['ada', 'ben'].map((user) => ({ user, mean: 0.5, count: 2 }));
    expect(figuresWithout(baselines, forgottenIn(erasing))).toEqual([baselines[1]]);
    expect(forgottenIn(said({ action: LessonChanged_Action.ACTION_RETIRE }))).toEqual([]);
  });

  it('no batch names a forgotten person for a judgement that comes late', () => {
    const leaving = forgottenIn(erasing);
    const late = (turn: TurnIds, judgedAtMs: number, more: Partial<Candidate> = {}) =>
      isOfForgotten({ ...candidate(turn), judgedAtMs, ...more }, leaving);
    const by = (giver: string) => ({ judged: TurnJudged.fromPartial({ giver }) });
    const own = { turn: 'own', ...ada };
    const bens = { turn: 'bens', tenant: 't', user: 'ben' };
    expect(late(own, 900)).toBe(true);
    expect(late(own, 1_100, { reason: 'missing' })).toBe(true);
    expect(late(bens, 900, by('ada'))).toBe(true);
    // What they say from then on is new, and so is what was said under their name elsewhere.
    expect(late(own, 1_100)).toBe(false);
    expect(late(bens, 1_100, by('ada'))).toBe(false);
    expect(late(bens, 900, by('eve'))).toBe(false);
    expect(late({ turn: 'x', tenant: 'u', user: 'ada' }, 900)).toBe(false);
  });

  it('turns of a forgotten person wait no longer, nor turns of others that wait with what they said of them', () => {
    const bens = { tenant: 't', user: 'ben' };
    const waiting = [
      { candidate: candidate({ turn: 'own', ...ada }), givers: new Map([[0, '']]) },
      { candidate: candidate({ turn: 'namesake', tenant: 'u', user: 'ada' }), givers: new Map([[0, 'ada']]) },
      // What they said first is carried on by what was said after it.
      {
        candidate: candidate({ turn: 'judged', ...bens }),
        givers: new Map([
          [3, 'ben'],
          [2, 'ada'],
          [1, 'ada'],
          [0, ''],
        ]),
      },
      { candidate: candidate({ turn: 'others', ...bens }), givers: new Map([[1, 'ben']]) },
    ];
    expect(turnsOfForgotten(waiting, [ada])).toEqual({ own: ['own'], judged: [{ turn: 'judged', from: 1 }] });
  });
});
