// What people say about a turn by itself, before and after what they say next.
import { until } from '@backtalk/kit/testing';
import { TurnJudged_Source } from '@backtalk/proto/facts';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import type { Judge } from './service.js';
import { JudgeRig } from './testing/judge-rig.js';

let rig: JudgeRig;

beforeAll(async () => {
  rig = await JudgeRig.start();
});
afterAll(() => rig.stop());
beforeEach(() => {
  rig.grade = () => '\\boxed{+1}';
  rig.engine.settings.faults = {};
});
afterEach(() => rig.stopJudges());

const neutral = 'The train leaves at nine.';

describe('feedback', () => {
  it('writes a later revision that outranks the votes, once', async () => {
    const judge = await rig.judge();
    const talk = await rig.turn([{ text: neutral }]);
    await rig.untilJudged(talk);
    await rig.feedback(talk, { hasScore: true, score: -1, comment: 'Answer in one brief sentence, please.' });
    expect(await rig.untilJudged(talk, 1)).toMatchObject({
      verdict: -1,
      hint: 'Answer in one brief sentence, please.',
      source: TurnJudged_Source.SOURCE_FEEDBACK,
    });
    await rig.feedback(talk, { hasScore: true, score: 1 });
    expect((await rig.untilJudged(talk, 2)).verdict).toBe(1);
    await until(
      async () =>
        (await rig.metric(judge, 'turns_judged_total{policy="backtalk",source="feedback",verdict="1"}')) === 1,
    );
    expect(await rig.judgements(talk.user)).toBe(3);
  });

  it('takes so much of one person on one turn, and others are heard all the same', async () => {
    const judge = await rig.judge();
    const talk = await rig.turn([]);
    for (let said = 1; said <= 10; said += 1) {
      await rig.feedback(talk, { hasScore: true, score: -1, comment: `Be brief, for the time number ${said}.` });
      if (said <= 8) await rig.untilJudged(talk, said);
    }
    const tooMuch = () => rig.metric(judge, 'turns_skipped_total{reason="said_enough"}');
    await until(async () => (await tooMuch()) === 2, { what: 'feedback that is too much' });
    await rig.feedback(talk, { hasScore: true, score: 1, giver: 'colleague' });
    expect(await rig.untilJudged(talk, 9)).toMatchObject({ giver: 'colleague', verdict: 1 });
    expect(await rig.judgements(talk.user)).toBe(9);
  });

  const wish = 'From now on answer in one sentence.';

  it('feedback stands above votes that come after it, with the words that were said beside it', async () => {
    rig.grade = () => '\\boxed{-1}';
    await Promise.all([rig.judge(), rig.judge()]);
    for (const [score, words, hint] of [
      [-1, `No. ${wish}`, `No. ${wish}`],
      [1, `Good. ${wish}`, wish],
    ] as const) {
      const talk = await rig.turn([]);
      await rig.feedback(talk, { hasScore: true, score });
      expect(await rig.untilJudged(talk, 1)).toMatchObject({ verdict: score, hint: '' });
      await rig.continue(talk, [{ text: words }]);
      expect(await rig.untilJudged(talk, 2)).toMatchObject({ verdict: score, hint, stands: true });
      expect((await rig.judged(talk))?.votes).toHaveLength(3);
      expect(await rig.judgements(talk.user)).toBe(3);
    }
  });

  it('a thumb down makes what the person said hindsight where votes had heard no blame in it', async () => {
    await rig.judge();
    const talk = await rig.turn([{ text: neutral }]);
    expect(await rig.untilJudged(talk)).toMatchObject({ verdict: 1, hint: '' });
    await rig.feedback(talk, { hasScore: true, score: -1 });
    expect(await rig.untilJudged(talk, 1)).toMatchObject({ verdict: -1, hint: neutral });
    const withNo = await rig.turn([]);
    await rig.continue(withNo, [{ text: neutral }], false);
    await rig.feedback(withNo, { hasScore: true, score: -1 });
    expect(await rig.untilJudged(withNo, 1)).toMatchObject({ verdict: -1, hint: '' });
  });

  it('words are put beside feedback by the next judge where one stored the votes and went away', async () => {
    const first = await rig.judge();
    const talk = await rig.turn([]);
    await rig.feedback(talk, { hasScore: true, score: -1 });
    expect(await rig.untilJudged(talk, 1)).toMatchObject({ hint: '' });
    rig.engine.settings.faults = { busy: true };
    await rig.continue(talk, [{ text: wish }]);
    await until(async () => (await rig.metric(first, 'turns_in_flight')) === 1);
    await rig.stored(talk, { revision: 0, verdict: -1, hint: wish, stands: true });
    await rig.stopJudges();
    const next = await rig.judge();
    expect(await rig.untilJudged(talk, 2)).toMatchObject({ verdict: -1, hint: wish, stands: true });
    expect(await rig.metric(next, 'turns_skipped_total{reason="judged_before"}')).toBe(1);
    expect(await rig.judgements(talk.user)).toBe(3);
  });

  it('a comment alone is a hint beside the votes, which decide, whichever comes first', async () => {
    const comment = 'Name the wavelength.';
    await rig.judge();
    for (const [grade, verdict, hint] of [
      ['-1', -1, comment],
      ['+1', 1, ''],
    ] as const) {
      rig.grade = () => `\\boxed{${grade}}`;
      const early = await rig.turn([]);
      await rig.feedback(early, { comment });
      expect(await rig.untilJudged(early, 1)).toMatchObject({ verdict: 0, hint: '' });
      await rig.continue(early, [{ text: neutral }]);
      expect(await rig.untilJudged(early, 2)).toMatchObject({ verdict, hint });
      const late = await rig.turn([{ text: neutral }]);
      await rig.untilJudged(late);
      await rig.feedback(late, { comment });
      expect(await rig.untilJudged(late, 1)).toMatchObject({ verdict, hint });
    }
  });

  it('a comment that corrects is judged by its words where no model votes', async () => {
    await rig.judge({ backend: 'words', engineUrls: [] });
    const talk = await rig.turn([]);
    const comment = "No, that's wrong. It has to be shorter.";
    await rig.feedback(talk, { comment });
    expect(await rig.untilJudged(talk, 1)).toMatchObject({ verdict: -1, hint: comment });
    const other = await rig.turn([]);
    await rig.feedback(other, { comment: 'Thank you, that is exactly what I needed!' });
    expect(await rig.untilJudged(other, 1)).toMatchObject({ verdict: 1, hint: '' });
  });

  it('another person’s score leaves the user’s wish to the user', async () => {
    rig.grade = () => '\\boxed{-1}';
    await rig.judge();
    const talk = await rig.turn([{ text: `No. ${wish}` }]);
    await rig.untilJudged(talk);
    await rig.feedback(talk, {
      hasScore: true,
      score: 1,
      comment: 'Fine. From now on use tables.',
      giver: 'colleague',
    });
    expect(await rig.untilJudged(talk, 1)).toMatchObject({
      verdict: 1,
      giver: 'colleague',
      hint: 'From now on use tables.',
      wish: { text: wish, stands: true },
    });
  });
});

describe('consent to feedback', () => {
  const wrong = { hasScore: true, score: -1 };
  const skipped = (judge: Judge, reason: string) =>
    until(async () => (await rig.metric(judge, `turns_skipped_total{reason="${reason}"}`)) === 1, { what: reason });

  it('carries its giver, who need not be the user of the turn', async () => {
    await rig.judge();
    const talk = await rig.turn([]);
    await rig.feedback(talk, { ...wrong, giver: 'colleague', consent: { train: true, source: 'default' } });
    expect(await rig.untilJudged(talk, 1)).toMatchObject({ giver: 'colleague', user: talk.user });
    await rig.feedback(talk, { hasScore: true, score: 1, giver: talk.user });
    expect(await rig.untilJudged(talk, 2)).toMatchObject({ giver: '', verdict: 1 });
  });

  it('feedback of a person who said no is kept and not learned from', async () => {
    const judge = await rig.judge();
    const talk = await rig.turn([]);
    await rig.feedback(talk, { ...wrong, giver: 'colleague', consent: { train: false, source: 'key' } });
    await skipped(judge, 'giver_opted_out');
    expect(await rig.judgements(talk.user)).toBe(0);
  });

  it('feedback on a turn that follows a "no" is not learned from, though the turn itself says nothing', async () => {
    const judge = await rig.judge();
    const talk = await rig.turn([]);
    await rig.withhold(talk, 'session');
    await rig.feedback(talk, wrong);
    await skipped(judge, 'opted_out');
    // Its own fact names no parent, and its person said no elsewhere: it may follow from there.
    const unknown = await rig.turn([], { user: talk.user, answerKeys: ['unknown'] });
    await rig.feedback(unknown, wrong);
    await skipped(judge, 'consent_unknown');
    expect(await rig.judgements(talk.user)).toBe(0);
    const other = await rig.turn([], { answerKeys: ['unknown'] });
    await rig.feedback(other, wrong);
    expect((await rig.untilJudged(other, 1)).verdict).toBe(-1);
  });
});
