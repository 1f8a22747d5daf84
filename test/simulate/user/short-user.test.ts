import { describe, expect, it } from 'vitest';
import { everydayQuestions } from './questions.js';
import { Random } from './random.js';
import { ShortUser } from './short-user.js';
import { corrections } from './wordings.js';

const long = 'The sky is blue because of the air. It scatters blue light more than red light. That is why.';

describe('ShortUser', () => {
  it('says the same again for the same seed and the same answers', () => {
    const talk = (seed: number) => {
      const user = new ShortUser(new Random(seed));
      return Array.from({ length: 40 }, () => [user.question(), user.react('why is the sky blue?', long)]);
    };
    expect(talk(7)).toEqual(talk(7));
    expect(talk(7)).not.toEqual(talk(8));
  });

  it('asks every question once before any comes again', () => {
    const user = new ShortUser(new Random(1));
    const asked = Array.from(everydayQuestions, () => user.question());
    expect(new Set(asked).size).toBe(everydayQuestions.length);
  });

  it('corrects long answers in at least five wordings, and shrugs at some', () => {
    const user = new ShortUser(new Random(3));
    const reactions = Array.from({ length: 200 }, () => user.react('why is the sky blue?', long));
    const said = new Set(reactions.flatMap((reaction) => (reaction.kind === 'correct' ? [reaction.words] : [])));
    expect(corrections.length).toBeGreaterThanOrEqual(5);
    expect(said.size).toBe(corrections.length);
    expect(reactions.some(({ kind }) => kind === 'leave')).toBe(true);
    expect(reactions.some(({ kind }) => kind === 'praise')).toBe(false);
  });

  it('goes on or says thanks after a short answer, and complains when it misses the question', () => {
    const user = new ShortUser(new Random(3));
    const kinds = (answer: string) =>
      new Set(Array.from({ length: 100 }, () => user.react('Why is the sky blue?', answer).kind));
    expect(kinds('The sky scatters blue light.')).toEqual(new Set(['praise', 'follow-up', 'leave']));
    expect(kinds('Bananas grow on plants.').has('complain')).toBe(true);
  });
});
