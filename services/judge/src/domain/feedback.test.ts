import { ownWish } from '@backtalk/kit';
import { FeedbackGiven, Provenance, TurnJudged, TurnJudged_Source } from '@backtalk/proto/facts';
import { describe, expect, it } from 'vitest';
import { hearing } from '../testing/hearing.js';
import { isSaidEnough, judgeFeedback, withVotesBelow } from './feedback.js';
import { readNextState } from './next-state.js';
import type { Verdict } from './verdict-value.js';

const { standing } = hearing;
const bare = { before: undefined, next: undefined, read: () => 0 as const, standing, session: 's', revision: 1 };
let said = 0;
const given = (giver: string, score = 1) =>
  FeedbackGiven.fromPartial({ turn: 't', user: 'ann', giver, hasScore: true, score, digest: `said${(said += 1)}` });
const judgedFor = (giver: string): TurnJudged => judgeFeedback({ ...bare, feedback: given(giver) }).message;
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

const wish = 'From now on answer in one sentence.';
const nextOf = (text: string) =>
  readNextState([{ text, provenance: Provenance.PROVENANCE_USER, toolName: '', toolCallId: '', isError: false }]);
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
  type Said = Partial<FeedbackGiven>;
  const fact = (said: Said) =>
    FeedbackGiven.fromPartial({ turn: 't', user: 'ann', giver: 'ann', digest: 'd', ...said });
  const below = (said: Said, first: TurnJudged, text: string, read: Verdict = 0) => {
    const beside = { next: nextOf(text), standing, read: () => read };
    const feedback = fact(said);
    const early = judgeFeedback({ ...bare, read: beside.read, feedback }).message;
    return { early, added: withVotesBelow([first, early], [feedback], beside) };
  };
  const up = { hasScore: true, score: 1 };
  const down = { hasScore: true, score: -1 };

  it('the hint of later votes is added to feedback that has none, once', () => {
    const first = votes(-1, `No. ${wish}`, true);
    const { early, added } = below(down, first, `No. ${wish}`);
    const kept = {
      revision: 2,
      verdict: -1,
      hint: `No. ${wish}`,
      stands: true,
      source: TurnJudged_Source.SOURCE_FEEDBACK,
    };
    expect(added).toMatchObject({ ...kept, evidence: early.evidence });
    const beside = { next: nextOf(wish), standing, read: bare.read };
    const all = [first, early, ...(added === undefined ? [] : [added])];
    expect(withVotesBelow(all, [fact(down)], beside)).toBeUndefined();
  });

  it('the verdict of the feedback says which of the words are hindsight', () => {
    expect(below(up, votes(-1, `Good. ${wish}`, true), `Good. ${wish}`).added).toMatchObject({
      verdict: 1,
      hint: wish,
    });
    expect(below(down, votes(0), 'In metres, I meant.').added).toMatchObject({ hint: 'In metres, I meant.' });
    expect(below(up, votes(1), 'And trains?').added).toBeUndefined();
  });

  it('a comment without a score takes the verdict of the votes, and is the hindsight of a bad answer', () => {
    const comment = 'Name the unit.';
    expect(below({ comment }, votes(-1, 'No.'), 'No.').early).toMatchObject({ verdict: 0, hint: '' });
    expect(below({ comment }, votes(-1, 'No.'), 'No.').added).toMatchObject({
      revision: 2,
      verdict: -1,
      hint: comment,
    });
    expect(below({ comment }, votes(1), 'Thanks!').added).toMatchObject({ verdict: 1, hint: '' });
    expect(below({ comment }, votes(0), 'And trains?').added).toBeUndefined();
  });

  it('a comment’s words decide where the votes do not, and no further', () => {
    const comment = 'Wrong, it is Canberra.';
    expect(below({ comment }, votes(0), 'And trains?', -1).early).toMatchObject({ verdict: -1, hint: comment });
    expect(below({ comment }, votes(0), 'And trains?', -1).added).toBeUndefined();
    expect(below({ comment }, votes(1), 'Thanks!', -1).added).toMatchObject({ verdict: 1, hint: '' });
    expect(below({ comment: 'Nice.' }, votes(-1, 'In metres.'), 'In metres.', 1).added).toMatchObject({
      verdict: -1,
      hint: 'In metres.',
    });
  });

  it('a score or a correction outranks votes, whichever comes first', () => {
    expect(below(up, votes(-1, 'No.'), 'No.').added?.verdict ?? 1).toBe(1);
    expect(below({ correction: 'It is Canberra.' }, votes(1), 'Thanks!').added?.verdict ?? -1).toBe(-1);
  });

  it('what votes add is what feedback after them would have come to', () => {
    for (const said of [up, down, { comment: 'Name the unit.' }, { correction: 'In feet.' }, { ...up, giver: 'bob' }])
      for (const first of [votes(-1, 'In metres.'), votes(0), votes(1, wish, true)]) {
        const next = nextOf('In metres.');
        const { early, added } = below(said, first, 'In metres.');
        const after = judgeFeedback({ ...bare, next, before: first, feedback: fact(said) }).message;
        const worth = ({ verdict, hint, stands, wish }: TurnJudged) => ({ verdict, hint, stands, wish });
        expect(worth(added ?? early)).toEqual(worth(after));
      }
  });

  it('nothing is added above votes alone, or where the session’s best turn was kept, or below feedback not read yet', () => {
    const beside = { next: nextOf('In metres.'), standing, read: bare.read };
    expect(withVotesBelow([votes(0)], [], beside)).toBeUndefined();
    const kept = TurnJudged.fromPartial({ revision: 1, verdict: -1, source: TurnJudged_Source.SOURCE_AT_LEAST_ONE });
    expect(withVotesBelow([votes(0), kept], [], beside)).toBeUndefined();
    const early = judgeFeedback({ ...bare, feedback: fact(down) }).message;
    expect(withVotesBelow([votes(0), early], [], beside)).toBeUndefined();
  });
});

describe('what the turn’s user asked for', () => {
  const judged = (feedback: Partial<FeedbackGiven>, before: TurnJudged | undefined, text: string) =>
    judgeFeedback({ ...bare, feedback: { ...given('ann'), ...feedback }, before, next: nextOf(text) }).message;
  const wishAfter = (...parts: Parameters<typeof judged>) => {
    const { text, stands } = ownWish(judged(...parts));
    return [text, stands];
  };

  it('a wish stays its user’s, whatever another person scores or writes', () => {
    const asked = votes(-1, `No. ${wish}`, true);
    for (const score of [-1, 0, 1])
      for (const comment of ['', 'From now on use tables.']) {
        expect(wishAfter({ giver: 'bob', score, comment }, asked, `No. ${wish}`)).toEqual([`No. ${wish}`, true]);
        expect(wishAfter({ giver: 'bob', score, comment }, undefined, `No. ${wish}`)).toEqual([wish, true]);
      }
    expect(wishAfter({ giver: 'bob' }, votes(-1, 'In metres.'), 'In metres.')).toEqual(['In metres.', false]);
  });

  it('another person’s words are never the user’s wish, also where the user gives the same score', () => {
    const bobs = judged({ giver: 'bob', score: -1, comment: 'From now on use tables.' }, votes(0), 'And trains?');
    expect(bobs).toMatchObject({ hint: 'From now on use tables.', stands: true });
    expect(ownWish(bobs).text).toBe('');
    const anns = judged({ score: -1 }, bobs, 'Trains are meant.');
    expect(anns).toMatchObject({ hint: 'From now on use tables.', giver: '' });
    expect(ownWish(anns)).toMatchObject({ text: 'Trains are meant.', stands: false });
  });

  it('a reason for refusing a call is no wish, also under a thumb down', () => {
    const text = '{"status":"denied","feedback":"From now on use rg."}';
    const next = readNextState([
      { text, provenance: Provenance.PROVENANCE_TOOL, toolName: 'run', toolCallId: '', isError: false },
    ]);
    const down = judgeFeedback({ ...bare, feedback: given('ann', -1), next }).message;
    expect(down).toMatchObject({ hint: 'From now on use rg.', stands: false });
    expect(ownWish(down).text).toBe('');
  });

  it('a later complaint of the user leaves a wish of theirs that stands', () => {
    const asked = votes(0, wish, true);
    expect(judged({ score: -1, comment: 'Wrong city.' }, asked, wish)).toMatchObject({ hint: 'Wrong city.' });
    expect(wishAfter({ score: -1, comment: 'Wrong city.' }, asked, wish)).toEqual([wish, true]);
    expect(wishAfter({ score: -1, comment: 'Always name the year.' }, asked, wish)).toEqual([
      'Always name the year.',
      true,
    ]);
    expect(wishAfter({ score: 1 }, votes(-1, 'In metres.'), 'In metres.')).toEqual(['', false]);
  });
});
