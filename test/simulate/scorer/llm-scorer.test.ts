import { describe, expect, it } from 'vitest';
import type { z } from 'zod';
import { exchanged, firstSentence, isEcho, isEmpty, isLooping } from './answer-text.js';
import { LlmScorer } from './llm-scorer.js';

const held = (question: string, answer: string, ended = true) => ({ question, answer, ended });
const quiet = { progress: () => ({ update: () => undefined, stop: () => undefined }) };
const criteria = {
  judges: 'It rhymes.',
  scale: [
    { score: 0, means: 'prose' },
    { score: 1, means: 'verse' },
  ],
};

/** A scorer whose model reads an answer so. */
function scorerOf(read: (answer: string) => unknown, signal = new AbortController().signal) {
  const heard: string[] = [];
  const reader = {
    ask: async <T>(
      messages: readonly { readonly content: string }[],
      form: z.ZodType<T>,
      options: { readonly signal: AbortSignal },
    ) => {
      options.signal.throwIfAborted();
      const given = messages.at(-1)?.content ?? '';
      heard.push(`${messages[0]?.content ?? ''}\n${given}`);
      return form.safeParse(read((JSON.parse(given.split('\n')[1] ?? '') as { answer: string }).answer)).data;
    },
  };
  return { scorer: new LlmScorer(criteria, reader, quiet, signal), heard };
}

describe('LlmScorer', () => {
  it('gives the mean of the scale, and nothing in the headline to an answer to another task', async () => {
    const verdicts: Record<string, unknown> = {
      'a rhyme of mine in every line': { answers: true, score: 1 },
      'some prose for you': { answers: true, score: 0.25 },
      'another rhyme another time': { answers: false, score: 1 },
      no: { answers: true, score: 0 },
    };
    const { scorer, heard } = scorerOf((answer) => verdicts[answer]);
    const scores = await scorer.score(Object.keys(verdicts).map((answer) => held('How?', answer)));
    expect(scores).toEqual({ obeys: 0.5625, hit: 0.75, headline: 0.3125, empty: 0.25, looping: 0, echo: 0.25 });
    expect(heard[0]).toMatch(/It rhymes\.[\s\S]*0: prose\n1: verse/);
  });

  it('leaves out an answer without a usable score, and scores nothing where those are many', async () => {
    const { scorer } = scorerOf((answer) =>
      answer.startsWith('odd') ? { answers: true, score: 9 } : { answers: true, score: 0.5 },
    );
    const answers = ['even a b', 'even c d', 'even e f', 'odd'].map((answer) => held('How?', answer));
    expect(await scorer.score(answers)).toMatchObject({ obeys: 0.5, hit: 1, headline: 0.5 });
    await expect(scorer.score([...answers, held('How?', 'odd too')])).rejects.toMatchObject({
      code: 'answers_unscored',
      detail: { unscored: 2, answers: 5 },
    });
  });

  it('a stop reaches the model that reads, so that no further answer is scored', async () => {
    const { scorer, heard } = scorerOf(() => ({ answers: true, score: 1 }), AbortSignal.abort());
    await expect(scorer.score([held('How?', 'So.')])).rejects.toMatchObject({ name: 'AbortError' });
    expect(heard).toEqual([]);
  });

  it('scores answers cut to their first sentence, and answers that are given to another task', async () => {
    const { scorer, heard } = scorerOf(() => ({ answers: true, score: 1 }));
    const answers = [held('One?', 'First. More.', false), held('Two?', 'Second! More.')];
    await scorer.scoreCut(answers);
    await scorer.scoreShuffled(answers);
    const given = heard.map((text) => /^\{"task.*$/m.exec(text)?.[0]);
    expect(given).toEqual([
      '{"task":"One?","answer":"First.","cut_off_by_its_length":false}',
      '{"task":"Two?","answer":"Second!","cut_off_by_its_length":false}',
      '{"task":"One?","answer":"Second! More.","cut_off_by_its_length":false}',
      '{"task":"Two?","answer":"First. More.","cut_off_by_its_length":true}',
    ]);
  });
});

describe('the text of an answer', () => {
  it.each([
    ['1. Take 3 eggs. Then stir.', '1. Take 3 eggs.'],
    ['What?! "No." So.', 'What?!'],
    ['It is 3.5 metres', 'It is 3.5 metres'],
  ])('the first sentence of %j is %j', (answer, first) => {
    expect(firstSentence(held('', answer)).answer).toBe(first);
  });

  it('an answer of two words is empty, four words three times are a loop, and words of the question are an echo', () => {
    expect([isEmpty(held('', 'Yes, four.')), isEmpty(held('', 'It is four.'))]).toEqual([true, false]);
    const again = 'and so it goes ';
    expect([isLooping(held('', again.repeat(3))), isLooping(held('', again.repeat(2)))]).toEqual([true, false]);
    const echo = (answer: string) => isEcho(held('How many apples has Tom?', answer));
    expect([echo('How many apples has Tom'), echo('He has 12 of them left')]).toEqual([true, false]);
  });

  it('every question gets the answer to another one', () => {
    const answers = ['a', 'b', 'c'].map((name) => held(`${name}?`, name));
    expect(exchanged(answers).map(({ question, answer }) => question + answer)).toEqual(['a?c', 'b?a', 'c?b']);
  });
});
