import { FeedbackGiven, TurnJudged, TurnJudged_Source } from '@backtalk/proto/facts';
import { expect, it } from 'vitest';
import { isSaidEnough, judgeFeedback } from './feedback.js';

const given = (giver: string) => FeedbackGiven.fromPartial({ turn: 't', user: 'ann', giver, hasScore: true, score: 1 });
const judgedFor = (giver: string): TurnJudged =>
  judgeFeedback({ feedback: given(giver), before: undefined, session: 's', revision: 1 }).message;
const others = (count: number) => Array.from({ length: count }, (_, at) => judgedFor(`other${at}`));
const times = (count: number, giver: string) => Array.from({ length: count }, () => judgedFor(giver));

it('feedback of one person on one turn counts eight times, whatever others said', () => {
  for (const giver of ['ann', 'bob']) {
    expect(isSaidEnough(given(giver), [...times(7, giver), ...others(9)])).toBe(false);
    expect(isSaidEnough(given(giver), times(8, giver))).toBe(true);
  }
});

it('feedback of all who are not the turn’s user counts 32 times, and the user is heard all the same', () => {
  const votes = Array.from({ length: 40 }, () => TurnJudged.fromPartial({ source: TurnJudged_Source.SOURCE_VOTES }));
  expect(isSaidEnough(given('eve'), [...others(31), ...times(8, 'ann'), ...votes])).toBe(false);
  expect(isSaidEnough(given('eve'), others(32))).toBe(true);
  expect(isSaidEnough(given('ann'), others(32))).toBe(false);
});
