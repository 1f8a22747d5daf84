import { kitErrors } from '@backtalk/kit';
import { describe, expect, it } from 'vitest';
import type { z } from 'zod';
import { LlmUser } from './llm-user.js';
import { readPersona } from './persona-file.js';
import { Random } from './random.js';

const persona = readPersona('student');
const seen = (text: string, ended = true) => ({ text, ended });
const away = () => kitErrors.unreachable({ reason: 'test' });
const asked = [{ role: 'user', content: 'what is 2+2?' }] as const;

interface Heard {
  readonly messages: readonly { readonly content: string }[];
  readonly seed: number;
}

/** A user whose model writes these objects one after another; an error is thrown. */
function userOf(replies: readonly unknown[], seed = 1, signal = new AbortController().signal) {
  const heard: Heard[] = [];
  const player = {
    ask: async <T>(messages: Heard['messages'], form: z.ZodType<T>, options: { readonly seed: number }) => {
      heard.push({ messages, seed: options.seed });
      const reply = replies[heard.length - 1];
      if (reply instanceof Error) throw reply;
      return form.safeParse(reply).data;
    },
  };
  return { user: new LlmUser(persona, new Random(seed), player, signal), heard };
}

describe('LlmUser', () => {
  it('corrects in the words of its model, and says thanks where the model is satisfied', async () => {
    const { user } = userOf([
      { satisfied: false, words: ' nah\n\ntoo robotic ' },
      { satisfied: true, words: 'cool, thx' },
    ]);
    expect(await user.react('', seen('**Answer: 4**'), asked)).toEqual({ kind: 'correct', words: 'nah too robotic' });
    expect(await user.react('', seen('its 4'), asked)).toEqual({ kind: 'praise', words: 'cool, thx' });
  });

  it('shows its model the person, the conversation as data, and where an answer was cut', async () => {
    const { user, heard } = userOf([]);
    const before = [...asked, { role: 'assistant', content: 'Four.' }, { role: 'user', content: 'shorter' }] as const;
    await user.react('what is 2+2?', seen('Fo"ur', false), before);
    const [system, conversation] = heard[0]?.messages ?? [];
    expect(system?.content).toContain(persona.who);
    expect(system?.content).toContain(persona.judges);
    expect(system?.content).not.toContain(persona.scale[0]?.means);
    const said = [
      { you: 'what is 2+2?' },
      { assistant: 'Four.' },
      { you: 'shorter' },
      { assistant: 'Fo"ur [cut off here]' },
    ];
    expect(conversation?.content).toContain(`\n${JSON.stringify(said)}\n`);
  });

  it.each([
    ['nothing that can be used', undefined],
    ['another form', { verdict: 'good' }],
    ['no words', { satisfied: false, words: ' \n ' }],
    ['more words than a person types', { satisfied: false, words: 'x'.repeat(1_001) }],
    ['a character of control', { satisfied: false, words: 'no\u001B[2J' }],
  ])('leaves where its model writes %s', async (_, reply) => {
    expect(await userOf([reply]).user.react('', seen('4'), asked)).toEqual({ kind: 'leave' });
  });

  it('leaves its session while its model is away, and ends the run at the third session in a row', async () => {
    const { user } = userOf([away(), away(), { satisfied: true, words: 'ok' }, away(), away(), away()]);
    const kinds: string[] = [];
    for (let session = 0; session < 5; session += 1) kinds.push((await user.react('', seen('4'), asked)).kind);
    expect(kinds).toEqual(['leave', 'leave', 'praise', 'leave', 'leave']);
    await expect(user.react('', seen('4'), asked)).rejects.toMatchObject({ code: 'unreachable' });
  });

  it('ends the run at once for what no waiting mends, and leaves quietly when it is stopped', async () => {
    const refused = kitErrors.configInvalid({ problems: ['no'] });
    await expect(userOf([refused]).user.react('', seen('4'), asked)).rejects.toBe(refused);
    expect(await userOf([refused], 1, AbortSignal.abort()).user.react('', seen('4'), asked)).toEqual({ kind: 'leave' });
  });

  it('asks every task once before any comes again, in an order and with seeds that follow from its own', async () => {
    const talk = async (seed: number) => {
      const { user, heard } = userOf([], seed);
      const tasks = persona.tasks.train.map(() => user.question());
      expect(new Set(tasks)).toEqual(new Set(persona.tasks.train));
      await user.react('', seen('4'), asked);
      return [tasks, heard[0]?.seed];
    };
    expect(await talk(7)).toEqual(await talk(7));
    expect(await talk(7)).not.toEqual(await talk(8));
  });
});
