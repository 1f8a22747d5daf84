import { createEngineClient } from '@backtalk/dialects';
import { startFakeEngine, type FakeEngine } from '@backtalk/dialects/testing';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';

import type { Relate } from '../domain/wish-relation.js';
import { AskedRelations } from './asked-relations.js';

const short = 'Keep it short.';
const crisp = 'I have no patience for essays.';
const novel = 'Tell it like a novel.';

let judge: FakeEngine;
let other: FakeEngine;
/** That is asked now. */
let model: string;
let pool: ConstructorParameters<typeof AskedRelations>[0];
let events: ConstructorParameters<typeof AskedRelations>[1];
let relations: AskedRelations;
let outcomes: string[];
/** What each request held, and what the judge says to it. */
let asked: string[];
let says: string;
let running: { now: number; most: number };

beforeEach(async () => {
  [outcomes, asked, says, model] = [[], [], box([], []), 'reader'];
  running = { now: 0, most: 0 };
  const reply = (messages: readonly { content: string }[]) => {
    asked.push(messages.at(-1)?.content ?? '');
    return says;
  };
  judge = await startFakeEngine({ baseModel: 'reader', reply });
  other = await startFakeEngine({ baseModel: 'other', reply });
  pool = {
    lastModel: '',
    use: async (_options, work) => {
      running.now += 1;
      running.most = Math.max(running.most, running.now);
      Object.assign(pool, { lastModel: model });
      const { url } = model === 'other' ? other : judge;
      const client = createEngineClient({ url, dialect: 'openai', apiKey: '' });
      try {
        return await work({ url, client, model });
      } finally {
        running.now -= 1;
        await client.close();
      }
    },
  };
  events = {
    wishRead: () => outcomes.push('read'),
    judgeFieldsRefused: (fields) => outcomes.push(`without ${fields.join()}`),
    wishesLeftToWords: (reason, wishes) => outcomes.push(`${reason} ${wishes}`),
  };
  relations = new AskedRelations(pool, events);
});

afterEach(async () => {
  await Promise.all([judge.stop(), other.stop()]);
});

function box(same: number[], opposite: number[]): string {
  return `Well. \\boxed{${JSON.stringify({ same, opposite })}}`;
}

function among(...wishes: readonly (readonly [string, readonly string[]])[]): Promise<Relate> {
  const signal = AbortSignal.timeout(20_000);
  return relations.among(
    wishes.map(([text, beside]) => ({ text, beside })),
    signal,
  );
}

describe('a judge that is asked about wishes', () => {
  it('one request says how a new wish stands to all earlier ones, in either order', async () => {
    says = box([2], [1]);
    const relate = await among([crisp, [novel, short, 'Use tables.']]);
    expect([relate(crisp, short), relate(short, crisp)]).toEqual(['same', 'same']);
    expect([relate(crisp, novel), relate(novel, crisp)]).toEqual(['opposite', 'opposite']);
    expect(relate(crisp, 'Use tables.')).toBe('different');
    expect(asked).toHaveLength(1);
    expect(outcomes).toEqual(['read']);
  });

  it('words decide how wishes stand that it was not asked about', async () => {
    const relate = await among([crisp, [short]]);
    expect(relate('Use tables.', 'Tables, please!')).toBe('same');
    expect(relate('Use tables.', 'No tables!')).toBe('opposite');
  });

  it.each([
    ['the same', [1], [], 'Use tables.', 'Never use tables.'],
    ['opposite', [], [1], 'Use tables.', 'Tables, please!'],
  ])('what it takes for %s and words for the contrary is different', async (_, same, opposite, one, other) => {
    says = box(same, opposite);
    expect((await among([one, [other]]))(one, other)).toBe('different');
  });

  it('what words alone would take for the same is what the judge says', async () => {
    expect((await among(['Use tables.', ['Tables, please!']]))('Use tables.', 'Tables, please!')).toBe('different');
  });

  it('asks nothing twice, and nothing about a wish and itself', async () => {
    says = box([1], []);
    await among([crisp, [short, crisp]], [crisp, [short]]);
    const relate = await among([short, [crisp]], [short, [short]]);
    expect(relate(short, crisp)).toBe('same');
    expect(asked).toHaveLength(1);
    await among([crisp, [short, novel]]);
    expect(asked).toHaveLength(2);
    expect(asked[1]).not.toContain(short);
  });

  it('asks anew when another model judges', async () => {
    says = box([1], []);
    await among([crisp, [short]]);
    model = 'other';
    await among([novel, [short]]);
    expect(asked).toHaveLength(2);
    await among([crisp, [short]]);
    await among([crisp, [short]]);
    expect(asked).toHaveLength(3);
  });

  it('asks about a bounded number of wishes, each beside a bounded number, and few at once', async () => {
    const many = Array.from({ length: 50 }, (_, n) => `Wish number ${n}.`);
    await among(...many.map((text) => [text, many.map((other) => `${other} ${text}`)] as const));
    expect(asked).toHaveLength(32);
    expect(outcomes).toContain('over_bound 18');
    expect(running.most).toBeLessThanOrEqual(4);
    const [first = ''] = asked;
    expect(first).toContain('earlier wish 32>>');
    expect(first).not.toContain('earlier wish 33>>');
  });
});

describe('a judge that says nothing about wishes', () => {
  const byWords = async () => {
    const relate = await among(['Use tables.', ['Tables, please!', 'No tables!']]);
    expect([relate('Use tables.', 'Tables, please!'), relate('Use tables.', 'No tables!')]).toEqual([
      'same',
      'opposite',
    ]);
  };

  it('words decide, and it is asked again, where its answer is not in form', async () => {
    says = 'I would say that both want tables.';
    await byWords();
    await byWords();
    expect(outcomes).toEqual(['unreadable 1', 'unreadable 1']);
    expect(asked).toHaveLength(2);
  });

  it('words decide where it fails', async () => {
    judge.settings.faults = { failStatus: 500 };
    await byWords();
    expect(outcomes).toEqual(['engine_failed 1']);
  });

  it('words decide where it takes too long', async () => {
    judge.settings.faults = { hang: true };
    relations = new AskedRelations(pool, events, 50);
    await byWords();
    expect(outcomes).toEqual(['out_of_time 1']);
  });

  it('an end of the work ends the questions, and is no outcome', async () => {
    judge.settings.faults = { hang: true };
    const stop = new AbortController();
    const asking = relations.among([{ text: crisp, beside: [short] }], stop.signal);
    stop.abort();
    await expect(asking).rejects.toThrow();
    expect(outcomes).toEqual([]);
  });
});
