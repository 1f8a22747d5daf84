import { describe, expect, it } from 'vitest';
import { Random } from './random.js';
import { SimulatedUser } from './simulated-user.js';
import { readUser } from './user-file.js';

const file = readUser('short');
const userOf = (seed: number) => new SimulatedUser(file, new Random(seed));
const answer = (text: string, ended = true) => ({ text, ended });
const long = answer('The sky is blue because of the air. It scatters blue light more than red light. That is why.');

describe('SimulatedUser', () => {
  it('says the same again for the same seed and the same answers', () => {
    const talk = (seed: number) => {
      const user = userOf(seed);
      return Array.from({ length: 40 }, () => [user.question(), user.react('why is the sky blue?', long)]);
    };
    expect(talk(7)).toEqual(talk(7));
    expect(talk(7)).not.toEqual(talk(8));
  });

  it('asks every question once before any comes again', () => {
    const user = userOf(1);
    const asked = Array.from(file.questions.train, () => user.question());
    expect(new Set(asked)).toEqual(new Set(file.questions.train));
  });

  it('corrects answers that violate its rule in all its wordings, and shrugs at some', () => {
    const user = userOf(3);
    const reactions = Array.from({ length: 200 }, () => user.react('why is the sky blue?', long));
    const said = new Set(reactions.flatMap((reaction) => (reaction.kind === 'correct' ? [reaction.words] : [])));
    expect(said).toEqual(new Set(file.corrections));
    expect(new Set(reactions.map(({ kind }) => kind))).toEqual(new Set(['correct', 'leave']));
  });

  it('goes on or says thanks where its rule is kept, and complains when the answer misses the question', () => {
    const user = userOf(3);
    const kinds = (text: string) =>
      new Set(Array.from({ length: 100 }, () => user.react('Why is the sky blue?', answer(text)).kind));
    expect(kinds('The sky scatters blue light.')).toEqual(new Set(['praise', 'follow-up', 'leave']));
    expect(kinds('Bananas grow on plants.').has('complain')).toBe(true);
  });

  it('never thanks for an answer that was cut', () => {
    const user = userOf(3);
    const kinds = Array.from({ length: 50 }, () => user.react('Why?', answer('Because the sky', false)).kind);
    expect(new Set(kinds)).toEqual(new Set(['correct', 'leave']));
  });
});
