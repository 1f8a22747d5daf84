import { asWording, ownWish } from '@backtalk/kit';
import { FeedbackGiven, TurnJudged } from '@backtalk/proto/facts';
import { describe, expect, it } from 'vitest';
import { hearing } from '../../testing/hearing.js';
import { judgeFeedback } from '../feedback.js';
import { judge } from '../judgement.js';
import type { Material } from '../material.js';
import { saidWords } from '../said-words.js';
import { hindsightOf, hindsightOfFeedback } from './hindsight.js';

const place = { turn: 't', tenant: 'a', user: 'u', policy: 'p', session: 's' };
const mark = { model: 'm', promptDigest: 'd' };
const vote = { valid: true, verdict: -1, hint: '', seed: 7 } as const;
const wanted = 'From now on answer in at most three short sentences.';
const complaint =
  'That is not what I asked for at all. I wanted the three steps of the recipe, and nothing of the history of bread.';

const material = (text: string): Material => ({
  place,
  conversation: [],
  question: 'q',
  answer: 'A long answer.',
  thoughts: '',
  version: '',
  next: { role: 'user', text, userText: saidWords(text), toolResults: [] },
});

const judged = (text: string, hint = '') =>
  judge(material(text), [{ ...vote, hint }], { evidence: [] }, mark, hearing).message;

describe('what becomes a lesson of a longer message', () => {
  it('a wish at its end is kept, and not the complaint before it', () => {
    const message = judged(`${complaint} ${complaint} ${wanted}`);
    expect(message.stands).toBe(true);
    expect(message.hint).toContain(complaint);
    expect(asWording(ownWish(message).text)).toBe(wanted);
  });

  it('what else is said, a fact for one, stays with its turn', () => {
    const said = `No, the capital of Australia is Canberra. ${wanted}`;
    expect(judged(said)).toMatchObject({ hint: said, stands: true, wish: { text: wanted, stands: true } });
    const feedback = FeedbackGiven.fromPartial({ ...place, giver: 'u', correction: said, digest: 'd1' });
    const beside = { next: undefined, read: () => 0 as const, standing: hearing.standing };
    const { message } = judgeFeedback({ ...beside, feedback, before: undefined, session: 's', revision: 1 });
    expect(message).toMatchObject({ hint: said, stands: true, wish: { text: wanted, stands: true } });
  });

  it('words that all stand are hint and wish in one, however they are laid out', () => {
    for (const said of ['From now on don\u2019t ever use tables.', 'From now on:\n- no tables\n- metric units'])
      expect(judged(said)).toMatchObject({ hint: hearing.standing(said)[0], stands: true, wish: undefined });
  });

  it('the first of two wishes that no lesson can hold together is kept whole', () => {
    const first = `From now on give every length that you mention in metres, and ${'never, ever '.repeat(5)}in feet.`;
    const second = 'Always answer in short sentences, each on a line of its own, and without any greeting before them.';
    expect(`${first} ${second}`.length).toBeGreaterThan(200);
    expect(ownWish(judged(`${first} ${second}`))).toMatchObject({ text: first, stands: true });
  });

  it('a wish beyond what a hint can hold is kept, too', () => {
    const message = judged(`${complaint} ${complaint} ${complaint} ${complaint} ${wanted}`);
    expect(message.hint).not.toContain(wanted);
    expect(ownWish(message)).toMatchObject({ text: wanted, stands: true });
  });

  it('a wish that stands is kept in its person’s words, whatever a vote writes of the same message', () => {
    const message = judged(`No, the capital is Canberra. ${wanted}`, 'Name Canberra as the capital.');
    expect(message).toMatchObject({ hint: 'Name Canberra as the capital.', stands: true });
    expect(ownWish(message)).toMatchObject({ text: wanted, stands: true });
    const once = judged('No, the capital is Canberra.', 'Name Canberra as the capital.');
    expect(once).toMatchObject({ hint: 'Name Canberra as the capital.', stands: false, wish: undefined });
  });

  it('feedback is read the same way', () => {
    const correction = `${complaint} ${complaint} ${wanted}`;
    const feedback = FeedbackGiven.fromPartial({ ...place, giver: 'u', correction, digest: 'd1' });
    const beside = { next: undefined, read: () => 0 as const, standing: hearing.standing };
    const { message } = judgeFeedback({ ...beside, feedback, before: undefined, session: 's', revision: 1 });
    expect(ownWish(message)).toMatchObject({ text: wanted, stands: true });
  });
});

describe('what stands of the words that began a conversation', () => {
  const asked = `${wanted} What is a fugue?`;
  const begun = (question: string, next: string, score: 1 | 0 | -1 = 1) =>
    judge({ ...material(next), begins: true, question }, [{ ...vote, verdict: score }], { evidence: [] }, mark, hearing)
      .message;

  it('what stands of the first words is their person’s wish, whatever they say of the answer', () => {
    expect(begun(asked, 'And a canon?')).toMatchObject({ verdict: 1, hint: '', stands: false });
    expect(begun(asked, 'And a canon?').wish).toEqual({ text: wanted, stands: true, bare: false });
    const wrong = begun(asked, 'That is a canon.', -1);
    expect(wrong).toMatchObject({ verdict: -1, hint: 'That is a canon.', stands: false, wish: { text: wanted } });
    expect(begun(`Please, ${wanted}`, 'What is a fugue?').wish?.text).toBe(`Please, ${wanted}`);
  });

  it('what stands of the words after the answer goes before it', () => {
    const message = begun(asked, 'Always use metric units.');
    expect(ownWish(message)).toEqual({ text: 'Always use metric units.', stands: true, bare: false });
  });

  it('no wish is heard of words that began nothing, nor of what others wrote or a person only asks', () => {
    const later = judge({ ...material('And a canon?'), question: asked }, [], { evidence: [] }, mark, hearing);
    expect(later.message.wish).toBeUndefined();
    for (const question of [
      'What is a fugue?',
      `Summarise this mail:\n\n${wanted}`,
      `Translate "${wanted}" into Danish.`,
      `<rules>${wanted}</rules>\nReview the file.`,
      `${wanted} ${'It goes on like this for long. '.repeat(10)}`,
      `${wanted} End with <|im_end|>.`,
      'Write my boss that I come at nine from now on.',
    ])
      expect(begun(question, 'And a canon?').wish, question).toBeUndefined();
  });
});

describe('what of a long message is a hint', () => {
  it('whole sentences in Hindi are kept, and what follows the last of them is not', () => {
    const said = 'यह गलत है और बहुत लंबा है। '.repeat(20);
    const { hint } = hindsightOf(material(said.slice(0, 590)), [], { verdict: -1, spoken: -1 }, hearing);
    expect(hint.length).toBeGreaterThan(300);
    expect(hint.endsWith('है।')).toBe(true);
  });

  it.each([
    ['Khmer', 'នេះខុស ហើយវែងពេក។', 'ពេក។'],
    ['Burmese', 'ဒါမှားတယ် ပြီးတော့ရှည်လွန်းတယ်။', 'လွန်းတယ်။'],
  ])('whole sentences in %s are kept without a space behind them', (_name, sentence, end) => {
    const said = sentence.repeat(40).slice(0, 590);
    const { hint } = hindsightOf(material(said), [], { verdict: -1, spoken: -1 }, hearing);
    expect(hint.length).toBeGreaterThan(300);
    expect(hint.endsWith(end)).toBe(true);
  });

  it('one in Lao, which ends sentences by no mark, ends with a whole word', () => {
    const said = 'ຕອບສັ້ນໃຊ້ກິໂລແມັດ'.repeat(30);
    const { hint } = hindsightOf(material(said), [], { verdict: -1, spoken: -1 }, hearing);
    expect(hint.length).toBeGreaterThan(380);
    expect(hint).toMatch(/(?:ຕອບ|ສັ້ນ|ໃຊ້|ກິໂລແມັດ)$/);
  });
});

describe('quotation marks', () => {
  it('what stands in them makes no wish that stands of the words around it', () => {
    const reported = material('Do not say "from now on always sing".');
    const given = { verdict: -1, spoken: -1 } as const;
    expect(hindsightOf(reported, [], given, hearing)).toMatchObject({ stands: false });
    const own = material('From now on end with "Have a wonderful day, my dear friend!"');
    expect(hindsightOf(own, [], given, hearing)).toMatchObject({ stands: true, hint: own.next.text });
  });

  it('a long one leaves no half of a sentence in feedback', () => {
    const long = `Wrong. Always write "${'this and that, '.repeat(5)}" at the end.`;
    expect(hindsightOfFeedback([long], true, hearing.standing)).toMatchObject({ hint: 'Wrong.', stands: false });
  });
});

describe('other hints of votes', () => {
  it('other hints go when what is corrected is told in other words, and stay beside the same hint', () => {
    const before = TurnJudged.fromPartial({ ...place, verdict: -1, hint: 'In French.', otherHints: ['In Dutch.'] });
    const beside = { next: undefined, read: () => 0 as const, standing: hearing.standing };
    const after = (given: Partial<FeedbackGiven>) => {
      const feedback = FeedbackGiven.fromPartial({ ...place, giver: 'u', digest: 'd1', ...given });
      return judgeFeedback({ ...beside, feedback, before, session: 's', revision: 1 }).message;
    };
    expect(after({ correction: 'In English.' })).toMatchObject({ hint: 'In English.', otherHints: [] });
    expect(after({ hasScore: true, score: 1 })).toMatchObject({ hint: '', otherHints: [] });
    expect(after({ hasScore: true, score: -1 })).toMatchObject({ hint: 'In French.', otherHints: ['In Dutch.'] });
  });
});
