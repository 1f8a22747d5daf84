import { describe, expect, it } from 'vitest';
import { Random } from './random.js';
import type { SeenAnswer } from './rule.js';
import { SimulatedUser } from './simulated-user.js';
import { readUser } from './user-file.js';

const file = readUser('short');
const userOf = (seed: number) => new SimulatedUser(file, new Random(seed));
const answer = (text: string, ended = true) => ({ text, ended });
const long = answer('The sky is blue because of the air. It scatters blue light more than red light. That is why.');

function reactionsTo(seen: SeenAnswer, times: number, user: SimulatedUser, before: () => string = () => '') {
  const talk = async () => ({ asked: before(), ...(await user.react('why is the sky blue?', seen)) });
  return Promise.all(Array.from({ length: times }, talk));
}

describe('SimulatedUser', () => {
  it('says the same again for the same seed and the same answers', async () => {
    const talk = (seed: number) => {
      const user = userOf(seed);
      return reactionsTo(long, 40, user, () => user.question());
    };
    expect(await talk(7)).toEqual(await talk(7));
    expect(await talk(7)).not.toEqual(await talk(8));
  });

  it('asks every question once before any comes again', () => {
    const user = userOf(1);
    const asked = Array.from(file.questions.train, () => user.question());
    expect(new Set(asked)).toEqual(new Set(file.questions.train));
  });

  it('corrects answers that violate its rule in all its wordings, and shrugs at some', async () => {
    const reactions = await reactionsTo(long, 200, userOf(3));
    const said = new Set(reactions.flatMap((reaction) => (reaction.kind === 'correct' ? [reaction.words] : [])));
    expect(said).toEqual(new Set(file.corrections));
    expect(new Set(reactions.map(({ kind }) => kind))).toEqual(new Set(['correct', 'leave']));
  });

  it('goes on or says thanks where its rule is kept, and complains when the answer misses the question', async () => {
    const user = userOf(3);
    const kinds = async (text: string) => new Set((await reactionsTo(answer(text), 100, user)).map(({ kind }) => kind));
    expect(await kinds('The sky scatters blue light.')).toEqual(new Set(['praise', 'follow-up', 'leave']));
    expect((await kinds('Bananas grow on plants.')).has('complain')).toBe(true);
  });

  it('never thanks for an answer that was cut', async () => {
    const kinds = (await reactionsTo(answer('Because the sky', false), 50, userOf(3))).map(({ kind }) => kind);
    expect(new Set(kinds)).toEqual(new Set(['correct', 'leave']));
  });
});
