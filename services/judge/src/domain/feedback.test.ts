import { FeedbackGiven, Provenance, TurnJudged, TurnJudged_Source } from '@backtalk/proto/facts';
import { describe, expect, it } from 'vitest';
import { isSaidEnough, judgeFeedback, withWordsBeside } from './feedback.js';
import { readNextState } from './next-state.js';

let said = 0;
const given = (giver: string, score = 1) =>
  FeedbackGiven.fromPartial({ turn: 't', user: 'ann', giver, hasScore: true, score, digest: `said${(said += 1)}` });
const judgedFor = (giver: string): TurnJudged =>
  judgeFeedback({ feedback: given(giver), before: undefined, next: undefined, session: 's', revision: 1 }).message;
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

it('feedback that is stored already is not too much, nor does a revision count that only adds words', () => {
  const eighth = given('ann');
  const eight = [...times(7, 'ann'), judgeFeedback({ ...bare, feedback: eighth }).message];
  expect(isSaidEnough(eighth, eight)).toBe(false);
  const [first] = eight;
  const added = TurnJudged.fromPartial({ ...first, revision: 9, hint: 'From now on be brief.' });
  expect(isSaidEnough(given('ann'), [...eight.slice(0, 7), added])).toBe(false);
});

const bare = { before: undefined, next: undefined, session: 's', revision: 1 };
const wish = 'From now on answer in one sentence.';
const nextOf = (text: string) =>
  readNextState([{ text, provenance: Provenance.PROVENANCE_USER, toolName: '', toolCallId: '' }]);
const votes = (verdict: number, hint = '', stands = false) =>
  TurnJudged.fromPartial({ turn: 't', user: 'ann', verdict, hint, stands, source: TurnJudged_Source.SOURCE_VOTES });

describe('feedback without words of its own', () => {
  const after = (score: number, before: TurnJudged | undefined, text: string, giver = 'ann') => {
    const { hint, stands } = judgeFeedback({
      ...bare,
      feedback: given(giver, score),
      before,
      next: nextOf(text),
    }).message;
    return [hint, stands];
  };

  it('takes what the person said next where the judgement before it has no hint', () => {
    for (const verdict of [0, 1])
      expect(after(-1, votes(verdict), 'In metres, I meant.')).toEqual(['In metres, I meant.', false]);
    expect(after(-1, undefined, `No. ${wish}`)).toEqual([`No. ${wish}`, true]);
    expect(after(1, undefined, `Good. ${wish}`)).toEqual([wish, true]);
    expect(after(1, votes(-1, 'In metres, I meant.'), 'In metres, I meant.')).toEqual(['', false]);
  });

  it('keeps a wish that stands, whatever the score says of the answer', () => {
    expect(after(1, votes(-1, `No. ${wish}`, true), 'And trains?')).toEqual([wish, true]);
    expect(after(-1, votes(0, wish, true), 'And trains?')).toEqual([wish, true]);
  });

  it('a score of another person makes only what stands hindsight of what the user said', () => {
    expect(after(-1, votes(0), 'In metres, I meant.', 'bob')).toEqual(['', false]);
    expect(after(-1, votes(0), `Thanks. ${wish}`, 'bob')).toEqual([wish, true]);
  });

  it('leaves what was said next alone where it says something itself', () => {
    const feedback = FeedbackGiven.fromPartial({
      turn: 't',
      user: 'ann',
      hasScore: true,
      score: -1,
      comment: 'In feet.',
    });
    expect(judgeFeedback({ ...bare, feedback, next: nextOf('In metres.') }).message.hint).toBe('In feet.');
  });
});

describe('votes that come after feedback', () => {
  const beside = (score: number, first: TurnJudged, text: string, giver = 'ann') => {
    const thumb = judgeFeedback({ ...bare, feedback: given(giver, score) }).message;
    return { thumb, added: withWordsBeside([first, thumb], nextOf(text)) };
  };

  it('the hint of later votes is added to feedback that has none, once', () => {
    const first = votes(-1, `No. ${wish}`, true);
    const { thumb, added } = beside(-1, first, `No. ${wish}`);
    const kept = {
      revision: 2,
      verdict: -1,
      hint: `No. ${wish}`,
      stands: true,
      source: TurnJudged_Source.SOURCE_FEEDBACK,
    };
    expect(added).toMatchObject({ ...kept, evidence: thumb.evidence });
    expect(withWordsBeside([first, thumb, ...(added === undefined ? [] : [added])], nextOf(wish))).toBeUndefined();
  });

  it('the verdict of the feedback says which of the words are hindsight', () => {
    expect(beside(1, votes(-1, `Good. ${wish}`, true), `Good. ${wish}`).added).toMatchObject({
      verdict: 1,
      hint: wish,
    });
    expect(beside(-1, votes(0), 'In metres, I meant.').added).toMatchObject({ hint: 'In metres, I meant.' });
    expect(beside(1, votes(1), 'And trains?').added).toBeUndefined();
  });

  it('nothing is added above votes alone, or where the session’s best turn was kept', () => {
    expect(withWordsBeside([votes(0)], nextOf('In metres.'))).toBeUndefined();
    const kept = TurnJudged.fromPartial({ revision: 1, verdict: -1, source: TurnJudged_Source.SOURCE_AT_LEAST_ONE });
    expect(withWordsBeside([votes(0), kept], nextOf('In metres.'))).toBeUndefined();
  });
});
